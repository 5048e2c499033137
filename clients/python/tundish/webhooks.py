"""Verifies webhooks, which are signed as Standard Webhooks say."""

import re
from typing import Any, Mapping, Union

from standardwebhooks import Webhook, WebhookVerificationError

_SECRET = re.compile(r"(whsec_)?[A-Za-z0-9+/]+={0,2}\s*")


def verify_webhook(secret: str, body: Union[str, bytes], headers: Mapping[str, str]) -> Any:
    """The event of a request, if it is signed with the project's `webhook_secret`. Raises `WebhookVerificationError`."""
    if not isinstance(body, (str, bytes, bytearray)):
        raise TypeError("Give verify_webhook the raw body, as text or bytes, and not what a JSON parser made of it.")
    lower = {name.lower(): value for name, value in headers.items()}
    webhook = _open(secret)
    try:
        return webhook.verify(body, lower)
    except ValueError as error:
        # A header or a body that no sender of events makes.
        raise WebhookVerificationError("The request is not a signed event.") from error


def _open(secret: str) -> Webhook:
    """A malformed secret is an error of the program: a `WebhookVerificationError` would say that the request is forged."""
    try:
        if _SECRET.fullmatch(secret):
            return Webhook(secret.strip())
    except (TypeError, ValueError):
        pass
    raise ValueError("Give verify_webhook the whole webhook secret, as it was printed: whsec_….")
