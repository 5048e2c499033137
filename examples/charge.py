# Charges a saved card once: python3 charge.py CUSTOMER AMOUNT CURRENCY KEY. The same KEY never charges twice.
import contextlib, http.client, json, os, sys, time, urllib.error, urllib.request

if len(sys.argv) != 5 or not all(map(os.environ.get, ("TUNDISH_URL", "ORGANIZATION", "ORGANIZATION_KEY"))):
    sys.exit("Set TUNDISH_URL, ORGANIZATION and ORGANIZATION_KEY: python3 charge.py CUSTOMER AMOUNT CURRENCY KEY")
names = ("external_id", "amount", "currency_code", "idempotency_key")
url = f"{os.environ['TUNDISH_URL']}/{os.environ['ORGANIZATION']}/v1/payment/one_off_charge"
headers = {"service-secret-key": os.environ["ORGANIZATION_KEY"], "content-type": "application/json"}
request = urllib.request.Request(url, json.dumps(dict(zip(names, sys.argv[1:5]))).encode(), headers)

for attempt in range(10):
    status = body = None
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            status, body = response.status, json.load(response)
    except urllib.error.HTTPError as error:
        status = error.code
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            body = json.load(error)
    except (OSError, ValueError, http.client.HTTPException):
        pass
    # Without a whole response, at 429 and at 5xx, the charge may have been made: send the same request again.
    if body and status != 429 and status < 500 and body.get("checkout_status") != "processing":
        print(status, body.get("checkout_status") or body.get("message"), body.get("order_id", ""))
        sys.exit(0 if body.get("checkout_status") == "succeeded" else 1)
    time.sleep(2)
sys.exit("No outcome yet: run it again later with the same key.")
