// Products with their prices: the list, and one product by id.
import type { FastifyInstance } from 'fastify'
import { listOf } from '../../core/lists/list.ts'
import { product, productRecord } from '../../core/records/product.ts'
import type { PublicContext } from './context.ts'
import { detailRoute, listRoute } from './resource.ts'

const list = listOf(productRecord, {
  shape: product,
  alias: 'p',
  maxLimit: 100,
  filters: {},
})

export function products(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/products', list, {
    operationId: 'listProducts',
    tag: 'Products',
    summary: 'List products',
    description: 'Newest first, each with its prices. With an `updated_at` filter: oldest change first, for a sync.',
  })
  detailRoute(app, reads, '/products/:id', list, {
    operationId: 'getProduct',
    tag: 'Products',
    summary: 'Get a product',
    description: 'The product with its prices.',
  })
}
