# What the Python client makes of bad records, broken and foreign responses, forged webhooks and a fork, as JSON.
import base64
import json
import os
import pickle
import time
from datetime import datetime, timezone
from decimal import Decimal

import httpx
from standardwebhooks import Webhook
from tundish import Billing, Data, LostCommits, OtherProject, TundishError, WebhookVerificationError, verify_webhook

url = os.environ["URL"]
key = os.environ["KEY"]
created_at = "2026-01-02T03:04:05Z"
out: dict = {}


def respond(*responses):
    """A client's transport with these responses, and the seconds that it waited."""
    rest, slept = list(responses), []
    transport = httpx.MockTransport(lambda request: rest.pop(0))
    return {"transport": transport, "sleep": lambda seconds: slept.append(int(seconds))}, slept


def person(name, **more):
    return {"record": "profile", "data": {"id": name, "created_at": created_at, **more}}


def error_of(work):
    try:
        work()
    except TundishError as error:
        return [error.status, str(error)]


bad = [{"phone": "a\0b"}, {"phone": "\ud800"}, {"phone": "x" * 1_100_000}]
records = [person(f"p{n}", **(bad[n // 2] if n % 2 else {})) for n in range(7)]
with Data(url, key) as data:
    result = data.write(records)
    codes = [reject["code"] for reject in result.rejects]
    out["bad"] = [result.read, result.written, [reject["index"] for reject in result.rejects], codes]

    data.write([person("exact", integrations={"n": Decimal("1.50"), "big": Decimal("1E+3"), "text": '"1.50"'})])
    out["exact"] = httpx.get(f"{url}/public/v1/profiles/exact", headers={"Service-Secret": key}).text.partition('"integrations":')[2]


def firewall(is_refused):
    """A transport to the server, with a firewall that refuses some bodies."""
    inner = httpx.HTTPTransport()
    handle = lambda request: httpx.Response(403, text="<html>") if is_refused(request.read()) else inner.handle_request(request)
    return Data(url, key, transport=httpx.MockTransport(handle))


records = [person(f"w{n}", **({"phone": "; ls"} if n % 5 == 2 else {})) for n in range(10)]
result = firewall(lambda body: b"; ls" in body).write(records)
out["firewall"] = [result.written, [[one["index"], one["code"]] for one in result.rejects]]
closed = firewall(lambda body: True)
out["closed"] = [error_of(lambda: closed.write(records)), error_of(lambda: closed.write(records[:1], skip_bad=False))]
first = iter([True, False])
out["moody"] = firewall(lambda body: next(first, False)).write([person("moody")]).written

inner = httpx.HTTPTransport()
altering = lambda request: inner.handle_request(httpx.Request("POST", request.url.copy_add_param("cache", "1"), headers=request.headers, content=request.read()))
altered = Data(url, key, transport=httpx.MockTransport(altering))
out["altered"] = error_of(lambda: altered.write([person("altered")]))[0]

broken = httpx.Response(200, text='{"checkout_sta')
more, slept = respond(broken, httpx.Response(200, json={"checkout_status": "succeeded"}))
charge = Billing("http://shop", "acme", "key", **more).charge("ada", "1", "USD", idempotency_key="one")
out["charge"] = [charge["checkout_status"], len(slept) + 1]
answers = [httpx.Response(200, json={"checkout_status": status}) for status in ["processing"] * 6 + ["succeeded"]]
keys, slept = [], []
transport = httpx.MockTransport(lambda request: keys.append(json.loads(request.content)["idempotency_key"]) or answers.pop(0))
shop = Billing("http://shop", "acme", "key", transport=transport, sleep=slept.append)
settle = lambda timeout: shop.charge_until_settled("ada", "1", "USD", idempotency_key="one", settle_timeout=timeout)["checkout_status"]
out["settles"] = [settle(0.5), settle(60), slept, keys]
row = lambda n: {"trx_created_at": f"2026-01-31T09:{n // 60:02}:{n % 60:02}Z"}
asked = []


def report(request):
    since, limit = (json.loads(request.content)[name] for name in ("last_transaction_date", "limit"))
    asked.append(since)
    rest = [row(n) for n in range(1200) if row(n)["trx_created_at"] > since]
    return httpx.Response(200, json={"transactions": rest[:limit]})


rows = list(Billing("http://shop", "acme", "key", transport=httpx.MockTransport(report)).report())
out["report"] = [rows == [row(n) for n in range(1200)], asked]
more, _ = respond(httpx.Response(200, json={"ok": True}))
out["foreign"] = error_of(lambda: Data("http://shop", "key", **more).write([person("ada")]))
for work in (lambda data: list(data.all("/profiles")), lambda data: data.total("/profiles")):
    more, _ = respond(httpx.Response(200, json={"ok": True}))
    out["foreign"].append(error_of(lambda: work(Data("http://shop", "key", **more))))
more, _ = respond(*[httpx.Response(200, text="<html>")] * 5)
out["html"] = error_of(lambda: Data("http://shop", "key", **more).get("/profiles/ada"))
more, _ = respond(httpx.Response(302))
out["moved"] = error_of(lambda: Data("http://shop", "key", **more).get("/profiles/ada"))

# As a proxy sends it that says gzip of its own page.
garbled = lambda: httpx.Response(502, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"<html>"))
more, slept = respond(garbled(), httpx.Response(200, json={"id": "ada"}))
out["garbled"] = [Data("http://shop", "key", **more).get("/profiles/ada")["id"], len(slept)]
more, slept = respond(garbled(), httpx.Response(200, text='{"horizon":"now"}\n'))
out["garbled"] += [[change.horizon for change in Data("http://shop", "key", **more).changes()], len(slept)]

# As a pool of processes returns them.
errors = [TundishError(404, "object_not_found", {"message": "There is none."}, "r"), LostCommits("2026"), OtherProject("2026")]
errors[0].retry_after = 7.0
out["pickled"] = [[str(copy) == str(error), vars(copy) == vars(error)] for error in errors for copy in [pickle.loads(pickle.dumps(error))]]

dates = {"Date": "Fri, 31 Jan 2020 09:00:00 GMT", "Retry-After": "Fri, 31 Jan 2020 09:00:30 GMT"}
asked = [{"Retry-After": "7"}, dates, {"Retry-After": "99999999"}]
more, slept = respond(*[httpx.Response(429, headers=one) for one in asked], httpx.Response(200, json={}))
Data("http://shop", "key", **more).get("/profiles/ada")
out["waits"] = slept
lines = '{"record":"profile","data":{}}\n{"cursor":"a"}\n{"horizon":"2026-01-31T09:00:00Z"}\n'
later = httpx.Response(503, headers={"Retry-After": "3"})
rest = [later, httpx.Response(200, text='{"rec'), httpx.Response(200, text='{"ok":true}'), httpx.Response(200, text=lines)]
more, slept = respond(*rest)
changes = list(Data("http://shop", "key", **more).changes())
# A text may contain what Python takes for the end of a line.
breaks = "\u0085\u2028\u2029"
record = json.dumps({"record": "profile", "data": {"id": breaks}}, ensure_ascii=False)
more, _ = respond(httpx.Response(200, text=f"{record}\n{lines}"))
first, *_ = Data("http://shop", "key", **more).changes()
out["breaks"] = first.data["id"] == breaks
out["changes"] = [changes[-1].horizon, len(slept) + 1, [slept[0], *(1 for one in slept[1:] if one < 3)]]

secret = "whsec_" + base64.b64encode(b"x" * 24).decode()
head = {"webhook-id": "a", "webhook-timestamp": str(int(time.time()))}
out["forged"] = 0
for body, signature in ((b"\xff", "v1,AAAA"), (b"{}", "v1"), (b"{}", "v1,\xe9")):
    try:
        verify_webhook(secret, body, {**head, "webhook-signature": signature})
    except WebhookVerificationError:
        out["forged"] += 1
at = datetime.now(timezone.utc)
signed = {**head, "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": Webhook(secret).sign("a", at, '{"id":"a"}')}
out["secret"] = [verify_webhook(f"{secret}\n", '{"id":"a"}', signed)["id"]]
for wrong in (None, "", "whsec_", "whsec_…", "whsec_a", "secret_a"):
    try:
        verify_webhook(wrong, '{"id":"a"}', signed)
    except ValueError as error:
        out["secret"].append(str(error))
try:
    Data("localhost:8080", "key")
except ValueError as error:
    out["address"] = str(error)

out["misuse"] = []
for work in (
    lambda: Data(url, "secret_…"),
    lambda: Billing(url, "acme", "secret_a\nb"),
    lambda: Data(url, key).anonymize("p0"),
    lambda: verify_webhook(secret, {"id": "a"}, {**head, "webhook-signature": "v1,AAAA"}),
):
    try:
        work()
    except (TypeError, ValueError) as error:
        out["misuse"].append(str(error))
out["line"] = Data(url, f"{key}\n").get("/profiles/p0")["id"]

# After a fork each process has its own connections: on a shared one, each would get what the other asked for.
data = Data(url, key)
data.get("/profiles/p0")
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        names = [f"p{(n + child) % 4 * 2}" for n in range(100)]
        try:
            os._exit(sum(data.get(f"/profiles/{name}")["id"] != name for name in names))
        finally:
            os._exit(255)
    children.append(pid)
out["fork"] = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(json.dumps(out))
