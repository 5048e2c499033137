# Runs the Python client against a server, and prints what it got as JSON.
import json
import os
from decimal import Decimal

from tundish import Billing, Data, OtherProject, TundishError, WebhookVerificationError, verify_webhook

url = os.environ["URL"]
customer = os.environ["CUSTOMER"]
created_at = "2026-01-02T03:04:05Z"
people = [{"record": "profile", "data": {"id": f"p{n}", "created_at": created_at}} for n in range(1500)]
bad = {"record": "session", "data": {"id": "bad", "created_at": created_at, "profile_id": "nobody"}}
out: dict = {}
with Data(url, os.environ["WRITER"]) as writer:
    result = writer.write([*people, bad])
    out["written"] = [result.read, result.written, result.rejected, result.rejects[0]["index"], result.rejects[0]["code"]]
    out["again"] = writer.write(people).unchanged
    try:
        writer.get("/profiles/p1")
    except TundishError as error:
        out["refused"] = [error.status, error.code]
    try:
        writer.write([bad], skip_bad=False)
    except TundishError as error:
        out["rejected"] = [error.status, error.code]
with Data(url, os.environ["KEY"]) as data:
    out["listed"] = len({one["id"] for one in data.all("/profiles")})
    out["one"] = data.get("/profiles/p7")["id"]
    lists = "funnels experiments products profiles sessions replies subscriptions transactions".split()
    out["lists"] = [len(list(data.all(f"/{name}"))) - data.total(f"/{name}") for name in lists]
    out["anonymized"] = [data.anonymize(["p7", "p8"]), data.get("/profiles/p7")["anonymized_at"] is not None]
    try:
        data.anonymize(["p9", "nobody"])
    except TundishError as error:
        out["unknown"] = [error.status, error.body["not_found"], data.get("/profiles/p9")["anonymized_at"]]
    changes = list(data.changes())
    out["changes"] = [len({one.data["id"] for one in changes[:-1]}), changes[-1].horizon is not None]
    since, created = changes[-1].horizon, changes[-1].project_created_at
    out["later"] = [one.horizon is not None for one in data.changes(since, created)]
    try:
        list(data.changes(since, created_at))
    except OtherProject as error:
        out["former"] = [str(error) == f"The project was created at {created}: what was read before is of a former one.", error.void_from]
with Billing(url, os.environ["ORG"], os.environ["ORG_KEY"]) as billing:
    ask = lambda: billing.charge(customer, "10.50", "USD", idempotency_key="one")
    first, second = ask(), ask()
    out["charged"] = [first["checkout_status"], first["order_id"] == second["order_id"], second["idempotent_replay"]]
    settled = billing.charge_until_settled(customer, "10.50", "USD", idempotency_key="one")
    out["settled"] = [settled["order_id"] == first["order_id"], settled["idempotent_replay"]]
    refund = billing.refund(customer, first["order_id"], idempotency_key="r1", amount="0.50", reason="kind", comment="a note")
    out["refunded"] = [refund["refund_status"], str(refund["amount"])]
    rows = list(billing.report(order_id=first["order_id"]))
    later = list(billing.report(rows[0]["trx_created_at"], order_id=first["order_id"]))
    out["report"] = [[str(row["amount"]) for row in rows], later == rows[1:]]
    out["balance"] = [[one["unit"], str(one["available"])] for one in billing.credits.balance(customer)]
    billing.credits.spend(customer, "tokens", "30", idempotency_key="s1")
    billing.credits.spend(customer, "tokens", "30", idempotency_key="s1")
    hold = billing.credits.hold(customer, "tokens", "50", idempotency_key="h1")
    billing.credits.capture(hold["hold_id"], amount="20", idempotency_key="c1")
    out["left"] = str(billing.credits.balance(customer)[0]["available"])
    billing.credits.spend(customer, "tokens", Decimal("1E+1"), idempotency_key="s3")
    out["rest"] = str(billing.credits.balance(customer)[0]["available"])
    billing.credits.grant(customer, "tokens", "5", idempotency_key="g1", expires_at="2999-01-01T00:00:00Z", metadata={"amount": 5})
    billing.credits.adjust(customer, "tokens", -2, reason="Outage", idempotency_key="a1")
    entries = list(billing.credits.entries(external_id=customer, unit="tokens"))
    rest = list(billing.credits.entries(external_id=customer, after=entries[-2]["created_at"]))
    out["entries"] = [[str(one["amount"]) for one in entries], entries[-2]["metadata"], rest == entries[-1:]]
    top_ups = billing.credits.top_ups
    limits = {"most_per_day": 1, "most_per_month": 3}
    rule = top_ups.set(customer, "tokens", below=1, amount="9.99", currency_code="USD", grants="1000", **limits)
    out["top-up"] = [rule["status"], str(rule["amount"]), [one["unit"] for one in top_ups.list(customer)]]
    top_ups.remove(customer, "tokens")
    try:
        top_ups.remove(customer, "tokens")
    except TundishError as error:
        out["no top-up"] = [error.code, top_ups.list(customer)]
    lists = {name: list(billing.all(f"/{name}")) for name in ("consumables", "refunds", "disputes")}
    out["billing lists"] = {name: [str(one["amount"]) for one in items] for name, items in lists.items()}
    try:
        billing.credits.spend(customer, "tokens", "1000", idempotency_key="s2")
    except TundishError as error:
        out["poor"] = error.code
    try:
        billing.charge(customer, "1.00", "USD")  # type: ignore[call-arg]
    except TypeError as error:
        out["no key"] = "idempotency_key" in str(error)
sent = json.loads(os.environ["WEBHOOK"])
out["event"] = verify_webhook(sent["secret"], sent["body"], sent["headers"])["type"]
try:
    verify_webhook(sent["secret"], sent["body"] + " ", sent["headers"])
except WebhookVerificationError:
    out["forged"] = True
print(json.dumps(out))
