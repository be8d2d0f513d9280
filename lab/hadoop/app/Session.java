// SPDX-License-Identifier: Apache-2.0
package lab.app;

import java.util.Map;

/** Be one application in one queue, wherever its master runs. */
interface Session {
  /** Pass a command to the master. */
  void handle(String line, Map<String, Object> command) throws Exception;
}
