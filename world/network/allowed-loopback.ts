import { parseAllowedHosts } from '../../src/core/egress/allowed-hosts.ts';

/** For the environment of a service whose POS systems are on this machine. */
export const ALLOW_PRIVATE_HOSTS = '127.0.0.1';
/** The same for `putLocation`. */
export const allowedHosts = parseAllowedHosts(ALLOW_PRIVATE_HOSTS);
