#!/bin/sh
# The newest E2B CLI.
#   JUNIT_XML  where the report goes     TEST_CASE  only cases with this in their name
set -eu
cd "$(dirname "$0")"
stamp=node_modules/.package-lock.json
if [ ! -e "$stamp" ] || [ package.json -nt "$stamp" ]; then
  npm install --no-audit --no-fund --no-package-lock --loglevel=error
  touch "$stamp"
fi
set -- --test --test-timeout=240000 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=junit --test-reporter-destination="${JUNIT_XML:-$(mktemp --suffix=.xml)}"
if [ -n "${TEST_CASE:-}" ]; then
  set -- "$@" --test-name-pattern="$TEST_CASE"
fi
exec python3 ../../../support/server.py -- node "$@" cli.test.mjs
