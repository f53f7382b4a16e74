#!/bin/sh
# The newest E2B CLI.
#   JUNIT_XML  where the report goes     TEST_CASE  only cases with this in their name
set -eu
cd "$(dirname "$0")"
. ../install.sh
set -- --test --test-timeout=240000 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=junit --test-reporter-destination="${JUNIT_XML:-$(mktemp --suffix=.xml)}"
if [ -n "${TEST_CASE:-}" ]; then
  set -- "$@" --test-name-pattern="$TEST_CASE"
fi
exec python3 ../../../support/server.py -- node "$@" cli.test.mjs
