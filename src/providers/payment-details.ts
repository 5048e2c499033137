// The fields of a report transaction that only the payment provider knows, as adapters return them.
export { noDetails, type PaymentDetails } from '../records/payment.ts'
