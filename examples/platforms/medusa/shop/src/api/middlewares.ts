import { defineMiddlewares } from '@medusajs/framework/http';
import { text } from 'express';

/** The signature is that of the bytes, so the body stays text. Medusa itself reads only `application/json`. */
export default defineMiddlewares({
  routes: [
    {
      matcher: '/expediter/statuses',
      methods: ['POST'],
      bodyParser: false,
      middlewares: [text({ type: () => true, limit: '64kb' })],
    },
  ],
});
