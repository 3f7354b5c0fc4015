/**
 * Reads orders with cancels, discounts, fees, taxes and nested modifiers, from a platform whose fields have the names of the canonical
 * order: `ORDER_MODULE=./examples/order-with-cancels.ts`. Remove the fields that your platform does not have.
 */
import type { OrderInput } from 'expediter-platform';

export const query = `query Order($id: ID!) {
  order(id: $id) {
    serviceOrderId
    locationId
    member { id name email phone }
    fulfillment {
      type
      destination { line1 line2 city postalCode region country latitude longitude instructions }
      requestedAt
    }
    items {
      serviceItemId name quantity unitPrice notes ageRestricted
      modifiers {
        serviceModifierId name quantity unitPrice
        modifiers {
          serviceModifierId name quantity unitPrice
          modifiers { serviceModifierId name quantity unitPrice }
        }
      }
    }
    money { subtotal discount tax tip fee total currency pricesIncludeTax }
    discounts { name amount }
    fees { name amount }
    taxes { name amount rate }
    notes
    placedAt
    cancelledAt
    cancelReason
  }
}`;

export const toCanonicalOrder = (data: unknown): OrderInput | null => (data as { order: OrderInput | null }).order;
