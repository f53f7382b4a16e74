#!/bin/sh
# Runs the suite with one version of the SDK: run.sh e2b-latest | e2b-2.45
#   JUNIT_XML (or JUNIT_OUT)  where the report goes     TEST_CASE   only cases with this in their name
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"
export E2B_PACKAGE="${1:-e2b-latest}"
report=${JUNIT_XML:-${JUNIT_OUT:-$(mktemp --suffix=.xml)}}
. ./install.sh
set -- --test --test-concurrency=2 --test-timeout=480000 \
  --test-reporter=spec --test-reporter-destination=stdout \
  --test-reporter=junit --test-reporter-destination="$report"
if [ -n "${TEST_CASE:-}" ]; then
  set -- "$@" --test-name-pattern="$TEST_CASE"
fi
exec python3 ../../support/server.py -- node "$@" "$here"/*.test.mjs
