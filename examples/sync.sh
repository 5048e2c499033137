#!/bin/sh
# Appends the records that changed since the last run to changes.ndjson, in the folder where it runs: sync.sh FILE keeps the horizon in FILE.
set -eu
from=$(cat "$1" 2>/dev/null || echo 1970-01-01T00:00:00Z)

curl -gsS --fail -D headers.txt -H "Service-Secret: $PROJECT_KEY" "$TUNDISH_URL/public/v1/export?from=$from" > window.ndjson
lost=$(tr -d '\r' < headers.txt | sed -n 's/^[Xx]-[Vv]oid-[Ff]rom: //p')
[ -z "$lost" ] || { echo "The server has lost commits: delete what has an updated_at from $lost on, and $1." >&2; exit 1; }
# Every change before the horizon is visible, and none will be added: a window that ends there misses nothing.
# Without this last line the export is incomplete.
to=$(tail -n 1 window.ndjson | sed -n 's/^{"horizon": *"\(.*\)"}$/\1/p')
[ -n "$to" ] || { echo 'The export broke off: run it again.' >&2; exit 1; }
cat window.ndjson >> changes.ndjson
rm window.ndjson headers.txt
# Only now: a run that ends early is repeated.
printf %s "$to" > "$1"
