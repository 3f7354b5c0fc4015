import { z } from 'zod';

const Field = z.string().min(1);

/** How a POS's webhooks are authenticated, for an operator who investigates a failure. It has names only, no values. */
export const WebhookAuth = z.object({
  kind: z
    .enum(['signature', 'password'])
    .describe('A signature of the body, or a password, which does not protect the body.'),
  header: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .describe('Its header, in lower case.'),
  settings: z.array(Field).min(1).meta({ description: 'The fields of the settings that verify it.' }),
  optional: z
    .literal(true)
    .exactOptional()
    .describe('Without those fields nothing is verified: only the token in the URL proves the sender.'),
  previousSetting: Field.exactOptional().describe(
    'The field with the previous secret, while the POS changes to the new one.',
  ),
  urlSetting: Field.exactOptional().describe('The field with the signed URL, if it is not the one of PUBLIC_URL.'),
  byConnect: z
    .literal(true)
    .exactOptional()
    .describe('`expediter provider connect` makes the POS and those fields agree.'),
});
export type WebhookAuth = z.infer<typeof WebhookAuth>;
