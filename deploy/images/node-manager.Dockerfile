# SPDX-License-Identifier: Apache-2.0
# A NodeManager with nm-proxy in front. First `make image-context`, then, from the repository's root:
#   docker build -f deploy/images/node-manager.Dockerfile --build-arg BASE=YOUR-HADOOP-IMAGE -t hadoop-node:3.5.0 build/image
# The base image is the Hadoop image that runs on the nodes now; it needs Python 3.11 beside Java, bash and Hadoop.
# `yarn` must be on its PATH (or be named behind `--` in the pod's args). No network is used.
ARG BASE
FROM ${BASE}

# The same first steps in both images, so that the second one is built in seconds.
USER 0:0
# An environment of its own: a NodeManager's tasks inherit its variables, and must not find these packages.
RUN python3.11 -m venv --without-pip /opt/yarn-copilot
# Two layers: what it needs changes seldom.
COPY packages /opt/yarn-copilot/lib/python3.11/site-packages
COPY program /opt/yarn-copilot/lib/python3.11/site-packages
RUN printf '#!/bin/sh\nexec /opt/yarn-copilot/bin/python -m nm_proxy.cli.main "$@"\n' >/usr/local/bin/nm-proxy; \
    chmod 755 /usr/local/bin/nm-proxy

# It runs as root, because it writes to the host's cgroup tree; the NodeManager need not (hadoop.user).
# Health and metrics, and the NodeManager's own.
EXPOSE 8049 8041 8042
ENTRYPOINT ["nm-proxy"]
CMD ["run", "--", "yarn", "nodemanager"]
