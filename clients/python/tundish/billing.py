"""The billing API: charges of saved cards, refunds, the report, and credits. Every movement has a key, which each retry repeats."""

import json
import time
from decimal import Decimal
from typing import Any, Iterator, Mapping, Optional, Sequence, Union, cast
from urllib.parse import quote

from .http import Http, exact

Json = dict[str, Any]
# A float is no amount: it may have other digits than were meant.
Amount = Union[str, int, Decimal]

REPORT_ROWS = 500
LIST_ROWS = 500
ENTRIES = 500
BEGINNING = "1970-01-01T00:00:00Z"
LONGEST_PAUSE_SECONDS = 15.0


class Billing:
    """The customers of an organization. `key` is a secret key of it, or one with the scopes that are used."""

    def __init__(self, url: str, organization: str, key: str, **more: Any) -> None:
        base = f"{url.rstrip('/')}/{quote(organization, safe='')}/v1"
        self._http = Http(base, {"service-secret-key": key}, **more)
        self.credits = Credits(self._http)

    def charge(
        self,
        external_id: str,
        amount: Amount,
        currency_code: str,
        *,
        idempotency_key: str,
        client_metadata: Optional[Mapping[str, Any]] = None,
        grants: Optional[Sequence[Mapping[str, Any]]] = None,
    ) -> Json:
        """Charges the saved card, at most once for a key. The `amount` is in major units: `10.50`."""
        body = {"external_id": external_id, "amount": amount, "currency_code": currency_code}
        more = {"idempotency_key": idempotency_key, "client_metadata": client_metadata, "grants": grants}
        return _post(self._http, "/payment/one_off_charge", {**body, **more})

    def charge_until_settled(
        self,
        external_id: str,
        amount: Amount,
        currency_code: str,
        *,
        idempotency_key: str,
        client_metadata: Optional[Mapping[str, Any]] = None,
        grants: Optional[Sequence[Mapping[str, Any]]] = None,
        settle_timeout: float = 120.0,
    ) -> Json:
        """
        The same, and while its outcome is not known it asks again with the same key, for up to `settle_timeout` seconds. After that
        the charge is returned as it is, `processing`.
        """
        # Unlike the date, this clock is never set.
        end = time.monotonic() + settle_timeout
        pause = 1.0
        while True:
            charge = self.charge(
                external_id,
                amount,
                currency_code,
                idempotency_key=idempotency_key,
                client_metadata=client_metadata,
                grants=grants,
            )
            if charge["checkout_status"] != "processing" or time.monotonic() + pause > end:
                return charge
            self._http.wait(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def refund(
        self,
        external_id: str,
        order_id: str,
        *,
        idempotency_key: str,
        amount: Optional[Amount] = None,
        soft_refund: Optional[bool] = None,
        reason: Optional[str] = None,
        comment: Optional[str] = None,
    ) -> Json:
        """Refunds an order, or a part of it, at most once for a key."""
        body = {"external_id": external_id, "order_id": order_id, "idempotency_key": idempotency_key}
        more = {"amount": amount, "soft_refund": soft_refund, "reason": reason, "comment": comment}
        return _post(self._http, "/payment/refund", {**body, **more})

    def assets(self, external_id: str) -> Json:
        """What a customer owns."""
        return _post(self._http, "/my_assets", {"external_id": external_id})

    def report(
        self,
        since: Optional[str] = None,
        *,
        subscription_id: Optional[str] = None,
        order_id: Optional[str] = None,
        oneoff_id: Optional[str] = None,
    ) -> Iterator[Json]:
        """The rows of the transaction report with a later `trx_created_at` than `since`, by default all: oldest first, each once."""
        last = since or BEGINNING
        names = {"subs_id": subscription_id, "order_id": order_id, "oneoff_id": oneoff_id, "limit": REPORT_ROWS}
        while True:
            rows = _post(self._http, "/transaction_report", {"last_transaction_date": last, **names})["transactions"]
            yield from rows
            if len(rows) < REPORT_ROWS:
                return
            last = rows[-1]["trx_created_at"]

    def all(self, path: str, **params: Union[str, int]) -> Iterator[Json]:
        """All items of the lists `/consumables`, `/refunds` and `/disputes`: `all("/refunds", **{"filter[updated_at.from]": "…"})`."""
        return self._http.items(path, {"limit": LIST_ROWS, **params})

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> "Billing":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Credits:
    """Credits that customers spend. Raises a `TundishError` with the code `insufficient_credits` where there are too few."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.top_ups = TopUps(http)

    def spend(
        self,
        external_id: str,
        unit: str,
        amount: Amount,
        *,
        idempotency_key: str,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> Json:
        """Spends credits, at most once for a key."""
        body = {"external_id": external_id, "unit": unit, "amount": amount}
        return _post(self._http, "/credits/spend", {**body, "idempotency_key": idempotency_key, "metadata": metadata})

    def hold(
        self, external_id: str, unit: str, amount: Amount, *, idempotency_key: str, expires_in: Optional[int] = None
    ) -> Json:
        """Reserves credits for a use whose amount is not known yet; ends after `expires_in` seconds, by default an hour."""
        body = {"external_id": external_id, "unit": unit, "amount": amount}
        return _post(self._http, "/credits/hold", {**body, "idempotency_key": idempotency_key, "expires_in": expires_in})

    def capture(
        self,
        hold_id: str,
        *,
        idempotency_key: str,
        amount: Optional[Amount] = None,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> Json:
        """Spends what was used of a hold, by default all, and releases the rest."""
        body = {"hold_id": hold_id, "idempotency_key": idempotency_key, "amount": amount, "metadata": metadata}
        return _post(self._http, "/credits/capture", body)

    def release(self, hold_id: str, *, idempotency_key: str) -> Json:
        return _post(self._http, "/credits/release", {"hold_id": hold_id, "idempotency_key": idempotency_key})

    def grant(
        self,
        external_id: str,
        unit: str,
        amount: Amount,
        *,
        idempotency_key: str,
        expires_at: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> Json:
        """Adds credits without a charge. Like `adjust`, it needs a key of the organization without scopes."""
        body = {"external_id": external_id, "unit": unit, "amount": amount, "idempotency_key": idempotency_key}
        return _post(self._http, "/credits/grant", {**body, "expires_at": expires_at, "metadata": metadata})

    def adjust(
        self,
        external_id: str,
        unit: str,
        amount: Amount,
        *,
        reason: str,
        idempotency_key: str,
        metadata: Optional[Mapping[str, Any]] = None,
    ) -> Json:
        """Corrects a balance. The amount may be negative, and takes at most what is available."""
        body = {"external_id": external_id, "unit": unit, "amount": amount, "idempotency_key": idempotency_key}
        return _post(self._http, "/credits/adjust", {**body, "reason": reason, "metadata": metadata})

    def entries(
        self, *, external_id: Optional[str] = None, unit: Optional[str] = None, after: Optional[str] = None
    ) -> Iterator[Json]:
        """The entries of the ledger with a later `created_at` than `after`, by default all: oldest first, each once."""
        names = {"external_id": external_id, "unit": unit, "limit": ENTRIES}
        while True:
            entries = _post(self._http, "/credits/entries", {**names, "after": after})["entries"]
            yield from entries
            if len(entries) < ENTRIES:
                return
            after = entries[-1]["created_at"]

    def balance(self, external_id: str) -> list[Json]:
        """The balances of a customer, by unit."""
        return cast(list[Json], _post(self._http, "/credits/balance", {"external_id": external_id})["balances"])


class TopUps:
    """The rules of customers whose saved card is charged when credits run out."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def set(
        self,
        external_id: str,
        unit: str,
        *,
        below: Amount,
        amount: Amount,
        currency_code: str,
        most_per_day: int,
        most_per_month: int,
        grants: Optional[Amount] = None,
        expires_after: Optional[str] = None,
    ) -> Json:
        """Sets the rule, and switches it on. Without `grants` a charge grants what the organization's rules grant for the amount."""
        body = {"external_id": external_id, "unit": unit, "below": below, "amount": amount, "currency_code": currency_code}
        more = {"most_per_day": most_per_day, "most_per_month": most_per_month}
        return _post(self._http, "/credits/top_up/set", {**body, **more, "grants": grants, "expires_after": expires_after})

    def remove(self, external_id: str, unit: str) -> None:
        """Raises a `TundishError` with the code `unknown_top_up` if there is none."""
        # Removed a second time, it would be unknown.
        _post(self._http, "/credits/top_up/remove", {"external_id": external_id, "unit": unit}, safe=False)

    def list(self, external_id: str) -> "list[Json]":
        return cast("list[Json]", _post(self._http, "/credits/top_up/list", {"external_id": external_id})["top_ups"])


def _post(http: Http, path: str, body: Json, safe: bool = True) -> Json:
    given = {name: value for name, value in body.items() if value is not None}
    headers = {"content-type": "application/json"}
    return cast(Json, http.call("POST", path, safe=safe, headers=headers, content=json.dumps(given, default=exact)))
