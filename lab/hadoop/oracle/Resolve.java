// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hadoop.yarn.conf.HAUtil;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/**
 * Answers what Hadoop itself makes of configuration folders.
 *
 * <p>Each line of standard input is {@code folder TAB kind TAB key}; each line of standard output is {@code OK TAB
 * value}, {@code UNSET} or {@code ERROR TAB class}. Backslash, tab and line ends in values are escaped. A folder is
 * put on the class path alone, as HADOOP_CONF_DIR is, and read anew for every folder that differs from the last one.
 */
public final class Resolve {
  private static YarnConfiguration configuration;
  private static String current = "";

  private Resolve() {}

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, "UTF-8");
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] parts = line.split("\t", 3);
      out.println(answer(parts[0], parts[1], parts[2]));
    }
  }

  private static String answer(String folder, String kind, String key) {
    try {
      if (!folder.equals(current)) {
        configuration = null;
        YarnConfiguration fresh = new YarnConfiguration();
        URL[] path = {new File(folder).toURI().toURL()};
        fresh.setClassLoader(new URLClassLoader(path, Resolve.class.getClassLoader()));
        fresh.reloadConfiguration();
        configuration = fresh;
        current = folder;
      }
      String value = value(kind, key);
      return value == null ? "UNSET" : "OK\t" + escape(value);
    } catch (Throwable problem) {
      return "ERROR\t" + problem.getClass().getName();
    }
  }

  private static String value(String kind, String key) {
    switch (kind) {
      case "get":
        return configuration.get(key);
      case "integer":
        return String.valueOf(configuration.getInt(key, -1));
      case "boolean":
        return String.valueOf(configuration.getBoolean(key, false));
      case "list":
        // Hadoop keeps empty entries in the middle, which no reader of a list of ids or names can use.
        return Arrays.stream(configuration.getTrimmedStrings(key))
            .filter(entry -> !entry.isEmpty())
            .collect(Collectors.joining(", ", "[", "]"));
      case "millis":
        return String.valueOf(configuration.getTimeDuration(key, -1L, TimeUnit.MILLISECONDS));
      case "seconds":
        return String.valueOf(configuration.getTimeDuration(key, -1L, TimeUnit.SECONDS));
      case "address": {
        // key = property SPACE rm-id SPACE default port; an id of "-" means no high availability
        String[] parts = key.split(" ");
        if (parts[1].equals("-")) {
          java.net.InetSocketAddress found =
              configuration.getSocketAddr(parts[0], "0.0.0.0:" + parts[2], Integer.parseInt(parts[2]));
          return found.getHostString() + ":" + found.getPort();
        }
        YarnConfiguration copy = new YarnConfiguration(configuration);
        copy.set(YarnConfiguration.RM_HA_ID, parts[1]);
        HAUtil.verifyAndSetConfiguration(copy);
        return HAUtil.getConfValueForRMInstance(parts[0], "", copy);
      }
      default:
        throw new IllegalArgumentException(kind);
    }
  }

  private static String escape(String value) {
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
  }
}
