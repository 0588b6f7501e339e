#!/bin/sh
# Send a message to a webhook account, with a file if one is given, and wait for its reply. curl and openssl do it all.
#
#     examples/webhook.sh "What is in this picture?" sunset.png
#
# CREDENTIALS is the account's own file with its secrets, URL its route, SENDER whoever writes, by a stable id.
# What comes is printed as it is, in JSON. The secret is an argument of openssl for a moment: not for machines that
# you share.
set -eu

text=${1:?"usage: $0 TEXT [FILE]"}
file=${2:-}
credentials=${CREDENTIALS:-.run/credentials/webhook/demo.json}
url=${URL:-http://127.0.0.1:8470/channels/webhook/demo}
sender=${SENDER:-you}
body=$(mktemp)
trap 'rm -f "$body"' EXIT

# Text as a string of JSON: backslashes and quotes are escaped, then lines are joined.
quoted() { printf '%s' "$1" | sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'; }

# The key is what the first secret's base64 decodes to, here as hex digits.
secret=$(tr -d '\n' <"$credentials" | sed -n 's/.*"secrets"[^"]*"whsec_\([^"]*\)".*/\1/p')
key=$(printf '%s\n' "$secret" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
token=$(tr -d '\n' <"$credentials" | sed -n 's/.*"ask_token" *: *"\([^"]*\)".*/\1/p')

# --- send -----------------------------------------------------------------------------------------------------------

id=msg_$(openssl rand -hex 12)
{
    printf '{"type":"message.created","timestamp":"%s","data":{' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf '"conversation_id":"shell","message_id":"%s","sender":{"id":"%s"},' "$id" "$(quoted "$sender")"
    if [ -n "$file" ]; then
        printf '"attachments":[{"name":"%s","content_base64":"' "$(quoted "${file##*/}")"
        openssl base64 -A -in "$file"
        printf '"}],'
    fi
    printf '"text":"%s"}}' "$(quoted "$text")"
} >"$body"

# Each try has the same id and the same bytes, and a time and a signature of its own.
for wait in 1 2 5 10 30 0; do
    now=$(date +%s)
    signature=$({ printf '%s.%s.' "$id" "$now" && cat "$body"; } |
        openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
    status=$(curl -s -o /dev/null -w '%{http_code}' "$url" --data-binary "@$body" \
        -H "content-type: application/json" -H "webhook-id: $id" \
        -H "webhook-timestamp: $now" -H "webhook-signature: v1,$signature") || true
    case $status in
        200 | 202) break ;;
        000 | 408 | 425 | 429 | 5??) sleep "$wait" ;;
        *) echo "refused with status $status" >&2 && exit 1 ;;
    esac
done
case $status in 200 | 202) ;; *) echo "nobody takes it: status $status" >&2 && exit 1 ;; esac

# --- ask, and settle ------------------------------------------------------------------------------------------------

# The answer's body, with its status in a line behind it.
ask() { curl -s -w '\n%{http_code}' "$url/replies?after=$cursor&wait=$1" -H "authorization: Bearer $token"; }

cursor=0
for _ in 1 2 3 4 5; do
    answer=$(ask 25) || true
    status=${answer##*
}
    answer=${answer%
*}
    case $status in
        200) ;;
        401) echo "sent, but who asks for the reply is refused: ask_token is not the account's" >&2 && exit 1 ;;
        404 | 405) echo "sent, but no reply can be asked for: an account with a callback_url posts them there" >&2 && exit 1 ;;
        *) echo "sent, but asking for the reply ended with status $status" >&2 && exit 1 ;;
    esac
    # One part to a line; whose reply it is stands in each.
    own=$(printf '%s' "$answer" | awk '{ sub(/\],"cursor":[0-9]*}$/, ""); gsub(/{"cursor":/, "\n&"); print }' |
        sed 's/,$//' | grep -F "\"in_reply_to\":\"$id\"" || true)
    [ -z "$own" ] || printf '%s\n' "$own"
    cursor=$(printf '%s' "$answer" | sed -n 's/.*"cursor":\([0-9]*\)}$/\1/p')
    case $own in
        *'"final":true'*)
            ask 0 >/dev/null # everything up to the cursor has arrived, and is not shown again
            exit 0
            ;;
    esac
done
echo "no reply yet: ask again later" >&2
exit 1
