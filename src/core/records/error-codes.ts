// The values of `X-Error-Code` besides those in lib/http, one table for each interface. docs/errors.md lists them all.
import { type ErrorCodes, HTTP_CODES } from '../../lib/http/error-codes.ts'

const COMMON: ErrorCodes = {
  ...HTTP_CODES,
  invalid_cursor: { status: 400, meaning: '`cursor` is not from this list with the same filters.' },
  unauthorized: { status: 401, meaning: 'The key is missing, misnamed, wrong or revoked.' },
  scope_missing: { status: 403, meaning: 'The key is valid, and lacks the scope that the endpoint needs.' },
  object_not_found: { status: 404, meaning: 'There is no such object, or it belongs to another tenant.' },
  rate_limited: { status: 429, meaning: 'Too many requests. Try again after `Retry-After` seconds.' },
}

const RECORDS: ErrorCodes = {
  too_many_imports: {
    status: 503,
    meaning: 'Too many imports are in progress in this process. Try again after `Retry-After` seconds.',
  },
  records_rejected: {
    status: 400,
    meaning: 'Records are bad, and nothing was written; `rejects` has the fault of each.',
  },
}

const DATA_API: ErrorCodes = {
  profiles_not_found: {
    status: 404,
    meaning: 'Profiles to erase do not exist; `not_found` lists them. None was erased.',
  },
}

const REFUND: ErrorCodes = {
  amount_above_what_is_left: { status: 400, meaning: 'The amount is more than what is left of the charge.' },
  amount_not_positive: { status: 400, meaning: 'The amount must be greater than 0.' },
  amount_too_many_decimals: { status: 400, meaning: 'The amount has more decimals than the currency.' },
  charge_reference_unknown: {
    status: 400,
    meaning: 'The provider’s identifier of the charge is unknown: refund it there.',
  },
  idempotency_key_required: { status: 400, meaning: 'A refund with an amount needs an `idempotency_key`.' },
  idempotency_key_reused: { status: 400, meaning: 'The key was used with other values. Nothing was done.' },
  invalid_amount: {
    status: 400,
    meaning: 'The amount is not a decimal number, or has an exponent or too many digits.',
  },
  nothing_left_to_refund: { status: 400, meaning: 'The charge is refunded completely.' },
  order_not_charged_here: { status: 400, meaning: 'The order was imported: refund it where it was charged.' },
  order_not_succeeded: { status: 400, meaning: 'Only an order that succeeded can be refunded.' },
  provider_not_set_up: { status: 400, meaning: 'The server has no access to the payment provider of the saved card.' },
  refund_in_progress: { status: 400, meaning: 'Another refund of the order is in progress.' },
  unknown_order: { status: 400, meaning: 'The customer has no such order.' },
  provider_unavailable: {
    status: 503,
    meaning: 'The payment provider cannot be reached; nothing was begun. Try again after `Retry-After` seconds.',
  },
}

const CHARGE: ErrorCodes = {
  restore_not_reconciled: {
    status: 503,
    meaning:
      'The database was restored, and a merchant account that may have charged this key was not compared yet; nothing was begun. The operator has to run `tundish reconcile`. After a failover this takes seconds.',
  },
  amount_above_maximum: { status: 400, meaning: 'The amount is above the organization’s maximum.' },
  amount_too_large: { status: 400, meaning: 'The amount is larger than the service can record.' },
  card_data_in_metadata: { status: 400, meaning: '`client_metadata` contains what looks like a card number.' },
  charge_cap_reached: {
    status: 400,
    meaning: 'The customer or the organization would exceed a cap of charges or money; the message names it.',
  },
  charge_in_progress: { status: 400, meaning: 'Another charge of the customer is in progress.' },
  currency_not_offered: { status: 400, meaning: 'The merchant account of the saved card does not offer the currency.' },
  metadata_too_large: { status: 400, meaning: '`client_metadata` has more than 16 KiB.' },
  no_saved_card: { status: 400, meaning: 'The customer has no saved card.' },
  no_successful_payment: { status: 400, meaning: 'The customer has no successful payment yet.' },
  not_accepted_by_provider: {
    status: 400,
    meaning: 'The payment provider of the saved card can never charge this amount in this currency.',
  },
  one_off_charge_disabled: { status: 400, meaning: 'Custom charges are not enabled for the organization.' },
  different_currencies: {
    status: 400,
    meaning: 'The projects have different reporting currencies, whose amounts are not added.',
  },
  unknown_currency: { status: 400, meaning: 'The currency is not one of ISO 4217.' },
  unknown_customer: { status: 400, meaning: 'There is no customer with this `external_id`.' },
}

const CREDITS: ErrorCodes = {
  hold_not_open: { status: 400, meaning: 'The hold was captured or released before, or has expired.' },
  insufficient_credits: {
    status: 400,
    meaning: 'The customer has not enough credits; `balance`, `held` and `available` say how many.',
  },
  invalid_credit_amount: {
    status: 400,
    meaning: 'The amount of credits is no decimal number, not positive, or has more digits than its unit.',
  },
  unknown_hold: { status: 400, meaning: 'The organization has no such hold.' },
  unknown_top_up: { status: 400, meaning: 'The customer has no automatic top-up of the unit.' },
  unknown_unit: { status: 400, meaning: 'The organization has no such unit of credits.' },
}

const OPERATOR: ErrorCodes = {
  unknown_customer: CHARGE.unknown_customer!,
  body_not_allowed: { status: 400, meaning: 'The operation takes no body.' },
  endpoint_address_not_public: { status: 400, meaning: 'The webhook endpoint is not at a public address.' },
  invalid_endpoint_url: { status: 400, meaning: 'The URL of the webhook endpoint breaks a rule.' },
  invalid_value: { status: 400, meaning: 'A value breaks a rule of the operation.' },
  different_currencies: {
    status: 400,
    meaning: 'The projects have different reporting currencies, whose amounts are not added.',
  },
  unknown_currency: { status: 400, meaning: 'The currency is not one of ISO 4217.' },
  credentials_refused: { status: 400, meaning: 'The payment provider rejects the secret key.' },
  wrong_account: { status: 400, meaning: 'The secret key belongs to another account of the payment provider.' },
  wrong_mode: { status: 409, meaning: 'A test-mode key for a live merchant account, or the reverse.' },
  unknown_event_kind: { status: 400, meaning: 'There is no such kind of event.' },
  other_origin: { status: 403, meaning: 'The form was not sent by the dashboard itself.' },
  role_missing: { status: 403, meaning: 'The role of the operator may not do this; the message names those that may.' },
  reach_missing: {
    status: 403,
    meaning: 'It concerns the whole installation, and the operator reaches some organizations or projects only.',
  },
  refund_above_limit: { status: 403, meaning: 'The refund is above the limit of the operator.' },
  endpoint_disabled: { status: 409, meaning: 'The webhook endpoint is switched off.' },
  event_not_wanted: { status: 409, meaning: 'No enabled webhook endpoint of the project takes events of this kind.' },
  operation_refused: { status: 409, meaning: 'The current state does not allow the operation; the message says why.' },
  too_many_endpoints: { status: 409, meaning: 'The project already has the maximum number of webhook endpoints.' },
  concerns_all_shards: {
    status: 421,
    meaning:
      'The operation concerns all shards, and this address forwards each request to one: the message has the command for all.',
  },
  host_not_allowed: { status: 421, meaning: '`Host` is not a name of this server: `ADMIN_HOST_NAMES` lists them.' },
  too_many_keys: { status: 409, meaning: 'The owner already has the maximum number of keys: revoke one first.' },
  identity_provider_unreachable: {
    status: 503,
    meaning: 'The identity provider cannot be reached, so the session of a person cannot be confirmed.',
  },
  audit_log_busy: {
    status: 503,
    meaning: 'Too many changes wait for the audit log. Try again after `Retry-After` seconds.',
  },
  master_key_replaced: {
    status: 503,
    meaning: 'The master key was replaced while this process ran: restart it with the new one.',
  },
}

/** The codes of the public listener: data API, billing API and health. */
export const PUBLIC_CODES: ErrorCodes = {
  ...COMMON,
  ...RECORDS,
  ...DATA_API,
  ...REFUND,
  ...CHARGE,
  ...CREDITS,
  invalid_signature: {
    status: 400,
    meaning: 'A notification is not signed by the payment provider of the merchant account.',
  },
  audit_log_busy: OPERATOR.audit_log_busy!,
  master_key_replaced: OPERATOR.master_key_replaced!,
  migrations_pending: { status: 503, meaning: 'Migrations have not been run yet.' },
}

/** The codes of the operator's listener. */
export const OPERATOR_CODES: ErrorCodes = { ...COMMON, ...RECORDS, ...REFUND, ...CREDITS, ...OPERATOR }
