import { z } from 'zod';

const Field = z.string().min(1);

/** How a POS's webhooks are authenticated, for an operator who investigates a failure: only names, no values. */
export const WebhookAuth = z.object({
  kind: z
    .enum(['signature', 'password'])
    .meta({ description: 'A signature of the body, or a password, which says nothing of the body.' }),
  header: z
    .string()
    .regex(/^[a-z0-9-]+$/)
    .meta({ description: 'Where it stands, in lower case.' }),
  settings: z.array(Field).min(1).meta({ description: 'The fields of the settings that it is verified with.' }),
  optional: z.literal(true).exactOptional().meta({
    description: 'Nothing is verified while those fields are left out: the token in the URL alone says who sent it.',
  }),
  previousSetting: Field.exactOptional().meta({
    description: 'The field that holds the secret before, while the POS changes over.',
  }),
  urlSetting: Field.exactOptional().meta({
    description: 'The field that holds the URL which is signed as well, where that is not ours by PUBLIC_URL.',
  }),
  byConnect: z
    .literal(true)
    .exactOptional()
    .meta({ description: '`expediter provider connect` makes the POS and those fields agree.' }),
});
export type WebhookAuth = z.infer<typeof WebhookAuth>;
