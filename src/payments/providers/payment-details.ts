// The fields of a report transaction that come from the payment provider, as adapters return them.
export { noDetails, type PaymentDetails } from '../../core/records/payment.ts'
