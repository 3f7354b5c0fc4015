/** A customer list: https://www.hubrise.com/developers/api/customers, read in November 2026. */
import { randomBytes } from 'node:crypto';
import { HubriseCustomer } from './check-hubrise-order.ts';

/** The fields that are lost for good, but for `private_ref`, which stays. */
const PERSONAL = [
  'email',
  'first_name',
  'last_name',
  'company_name',
  'phone',
  'phone_access_code',
  'address_1',
  'address_2',
  'postal_code',
  'latitude',
  'longitude',
  'delivery_notes',
];

export type ListedCustomer = Record<string, unknown> & { id: string; private_ref: string | null; anonymised: boolean };
export type HubriseAnswer = { status: number; body: unknown };

export type HubriseCustomers = ReturnType<typeof hubriseCustomers>;

export function hubriseCustomers(listId: string) {
  const customers: ListedCustomer[] = [];
  const invalid = (field: string): HubriseAnswer => ({
    status: 422,
    body: {
      message: 'Validation failed',
      errors: [{ field, message: 'is invalid' }],
      error_type: 'unprocessable_entity',
    },
  });
  const notFound: HubriseAnswer = { status: 404, body: { error_type: 'not_found' } };

  /** "Must be unique among the customer list if defined." */
  function problemWith(json: unknown, self?: ListedCustomer): HubriseAnswer | undefined {
    const read = HubriseCustomer.safeParse(json);
    if (!read.success) return invalid(read.error.issues[0]?.path.join('.') ?? '');
    const { private_ref } = read.data;
    const isTaken = customers.some((each) => each !== self && private_ref && each.private_ref === private_ref);
    return isTaken ? invalid('private_ref') : undefined;
  }

  return {
    listId,
    customers,
    anonymise(customer: ListedCustomer): void {
      for (const field of PERSONAL) customer[field] = null;
      customer.anonymised = true;
    },
    /** @param path after `/v1/customer_lists` */
    answer(method: string, path: string, filters: URLSearchParams, json: unknown): HubriseAnswer {
      const [, list, of, id] = path.split('/');
      if (list !== listId) return notFound;
      if (of === undefined) return { status: 200, body: { id: listId, name: 'Online customers' } };
      if (of !== 'customers') return notFound;
      if (id === undefined && method === 'GET') {
        const reference = filters.get('private_ref');
        return { status: 200, body: customers.filter(({ private_ref }) => private_ref === reference) };
      }
      const known = customers.find((each) => each.id === id);
      if (id === undefined ? method !== 'POST' : method !== 'PATCH' || known === undefined) return notFound;
      const problem = problemWith(json, known);
      if (problem !== undefined) return problem;
      if (known !== undefined) {
        const fields = Object.entries(json as object).filter(([name]) => !known.anonymised || !PERSONAL.includes(name));
        return { status: 200, body: Object.assign(known, Object.fromEntries(fields)) };
      }
      const customer = {
        ...(json as object),
        id: randomBytes(4).toString('hex'),
        private_ref: (json as { private_ref?: string }).private_ref ?? null,
        customer_list_id: listId,
        anonymised: false,
      };
      customers.push(customer);
      return { status: 200, body: customer };
    },
  };
}
