# shellcheck shell=sh
# Sourced in a folder with a package.json: installs what its lock file names, or in a full run the newest.
if [ "${TEST_SIZE:-}" = full ]; then
  lock=--no-package-lock wanted="newest of $(date +%F)"
else
  lock=--no-save wanted=$(sha256sum package-lock.json)
fi
if [ "$(cat node_modules/installed 2> /dev/null)" != "$wanted" ]; then
  rm -rf node_modules
  npm install "$lock" --no-audit --no-fund --loglevel=error
  echo "$wanted" > node_modules/installed
fi
