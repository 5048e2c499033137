#!/bin/sh
# Charges a saved card once: charge.sh CUSTOMER AMOUNT CURRENCY KEY. The same KEY never charges twice.
set -eu
body=$(printf '{"external_id": "%s", "amount": "%s", "currency_code": "%s", "idempotency_key": "%s"}' "$1" "$2" "$3" "$4")

# Without a response, at 429 and at 5xx, the charge may have been made: curl sends the same request again.
response=$(curl -sS --retry 9 --retry-all-errors --max-time 60 \
  -H "service-secret-key: $ORGANIZATION_KEY" -H 'Content-Type: application/json' \
  "$TUNDISH_URL/$ORGANIZATION/v1/payment/one_off_charge" -d "$body")
echo "$response"
case $response in
  *'"checkout_status":"succeeded"'*) ;;
  *'"checkout_status":"failed"'* | *'"checkout_status":"cancelled"'* | *'"message":'*) exit 1 ;;
  *) echo 'No outcome yet: run it again later with the same key.' >&2; exit 1 ;;
esac
