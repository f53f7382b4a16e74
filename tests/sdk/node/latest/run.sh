#!/bin/sh
# The newest SDK.
exec "$(dirname "$0")/../run.sh" e2b-latest
