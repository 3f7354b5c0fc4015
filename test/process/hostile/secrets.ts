/** Of the location `signed`, and of nobody. */
export const SECRET = `whsec_${Buffer.alloc(24, 'hostile').toString('base64')}`;
export const STRANGER = `whsec_${Buffer.alloc(24, 'anonymous').toString('base64')}`;
