# Receives events, and verifies that they are genuine: WEBHOOK_SECRET=whsec_… PORT=3000 python3 webhook.py
import base64, hashlib, hmac, json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

if not os.environ.get("WEBHOOK_SECRET", "").startswith("whsec_"):
    sys.exit("Set WEBHOOK_SECRET to the webhook_secret of the project: whsec_…")
KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))


def is_genuine(headers, body):
    at = headers.get("webhook-timestamp", "")
    # An old request may be one that an attacker recorded.
    if not at.isdecimal() or abs(time.time() - int(at)) > 300:
        return False
    signed = f"{headers.get('webhook-id', '')}.{at}.".encode() + body
    own = b"v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest())
    return any(hmac.compare_digest(one.encode(), own) for one in headers.get("webhook-signature", "").split(" "))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        genuine = is_genuine(self.headers, body)
        if genuine:
            event = json.loads(body)
            # An event may come twice: store its id with your change, in one transaction, and ignore it the second time.
            print(event["id"], event["type"], event["data"].get("id", event["data"].get("order_id", "")), flush=True)
        self.send_response(204 if genuine else 401)
        self.end_headers()

    def log_message(self, *_):
        pass


port = int(os.environ.get("PORT", "3000"))
try:
    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
except OSError as error:
    sys.exit(f"127.0.0.1:{port}: {error}")
print("listening on", server.server_port, flush=True)
server.serve_forever()
