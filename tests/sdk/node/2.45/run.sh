#!/bin/sh
# SDK 2.45: the last generation that speaks the v1 routes and checks the form of the key.
exec "$(dirname "$0")/../run.sh" e2b-2.45
