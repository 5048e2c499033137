# Charges a saved card once: python3 charge.py CUSTOMER AMOUNT CURRENCY KEY. The same KEY never charges twice.
import json, os, sys, time, urllib.error, urllib.request

names = ("external_id", "amount", "currency_code", "idempotency_key")
url = f"{os.environ['TUNDISH_URL']}/{os.environ['ORGANIZATION']}/v1/payment/one_off_charge"
headers = {"service-secret-key": os.environ["ORGANIZATION_KEY"], "content-type": "application/json"}
request = urllib.request.Request(url, json.dumps(dict(zip(names, sys.argv[1:5]))).encode(), headers)

for attempt in range(10):
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    except OSError:
        response = None
    # Without a response, at 429 and at 5xx, the charge may have been made: send the same request again.
    if response is not None and response.status != 429 and response.status < 500:
        body = json.load(response)
        if body.get("checkout_status") != "processing":
            print(response.status, body.get("checkout_status") or body.get("message"), body.get("order_id", ""))
            sys.exit(0 if body.get("checkout_status") == "succeeded" else 1)
    time.sleep(2)
sys.exit("No outcome yet: run it again later with the same key.")
