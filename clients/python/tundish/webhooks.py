"""Verifies webhooks, which are signed as Standard Webhooks say."""

from typing import Any, Mapping, Union

from standardwebhooks import Webhook, WebhookVerificationError


def verify_webhook(secret: str, body: Union[str, bytes], headers: Mapping[str, str]) -> Any:
    """The event of a request, if it is signed with the project's `webhook_secret`. Raises `WebhookVerificationError`."""
    if not isinstance(body, (str, bytes, bytearray)):
        raise TypeError("Give verify_webhook the raw body, as text or bytes, and not what a JSON parser made of it.")
    lower = {name.lower(): value for name, value in headers.items()}
    webhook = Webhook(secret)
    try:
        return webhook.verify(body, lower)
    except ValueError as error:
        # A header or a body that no sender of events makes.
        raise WebhookVerificationError("The request is not a signed event.") from error
