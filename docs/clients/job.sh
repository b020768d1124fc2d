#!/bin/sh
# Submit an article, wait for its end and print its summary. Needs curl and python3.
#
#   BATON_URL=http://127.0.0.1:8000 BATON_TOKEN=baton_… sh job.sh https://example.org/story [KEY]
#
# Repeat it with the same KEY after any failure: the job is made once.
set -eu

usage="usage: BATON_URL=… BATON_TOKEN=… sh job.sh SOURCE_URL [KEY]"
: "${BATON_URL:?$usage}" "${BATON_TOKEN:?$usage}"
source_url=${1:?$usage}
key=${2:-$(python3 -c 'import uuid; print(uuid.uuid4())')}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Print one member of a JSON file, by its path of names.
member() {
    python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    value = value[name]
print(value)' "$@"
}

# Call and keep the body; repeat what may succeed later. The key makes repeating a POST safe.
call() {
    curl --silent --show-error --fail-with-body --max-time 60 --retry 5 --retry-connrefused \
        --header "Authorization: Bearer $BATON_TOKEN" --output "$scratch/answer.json" "$@" ||
        { cat "$scratch/answer.json" >&2 2>/dev/null; exit 1; }
}

python3 -c 'import json, sys; print(json.dumps({"kind": "article", "source_url": sys.argv[1]}))' \
    "$source_url" >"$scratch/request.json"
call --request POST "$BATON_URL/api/v1/jobs" --header "Content-Type: application/json" \
    --header "Idempotency-Key: \"$key\"" --data-binary "@$scratch/request.json"
job=$(member "$scratch/answer.json" links self)

while :; do
    call "$job" --header "Prefer: wait=20"
    status=$(member "$scratch/answer.json" status)
    case $status in
    ready) member "$scratch/answer.json" result summary; exit 0 ;;
    failed) member "$scratch/answer.json" error message >&2; exit 2 ;;
    canceled) echo "the job was canceled" >&2; exit 3 ;;
    esac
done
