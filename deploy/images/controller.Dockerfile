# SPDX-License-Identifier: Apache-2.0
# The controller. First `make image-context`, then, from the repository's root:
#   docker build -f deploy/images/controller.Dockerfile -t yarn-copilot:0.1.0 build/image
# The base image needs Python 3.11 and nothing else; no network is used.
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

# The same first steps in both images, so that the second one is built in seconds.
USER 0:0
# An environment of its own: a NodeManager's tasks inherit its variables, and must not find these packages.
RUN python3.11 -m venv --without-pip /opt/yarn-copilot
# Two layers: what it needs changes seldom.
COPY packages /opt/yarn-copilot/lib/python3.11/site-packages
COPY program /opt/yarn-copilot/lib/python3.11/site-packages
RUN printf '#!/bin/sh\nexec /opt/yarn-copilot/bin/python -m yarn_copilot.cli.main "$@"\n' >/usr/local/bin/yarn-copilot; \
    chmod 755 /usr/local/bin/yarn-copilot

USER 65532:65532
ENTRYPOINT ["yarn-copilot"]
CMD ["--help"]
