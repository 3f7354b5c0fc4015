import { printable } from '../../src/observe/terminal-text.ts';
import { useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { Fact } from '../parts/fact.tsx';
import { endAfter, Expires } from '../parts/expires.tsx';
import { Text } from '../parts/form.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { CopyButton, Copyable } from '../parts/copyable.tsx';
import { vendorName } from '../parts/names.ts';
import { Failed } from '../locations/connection-test.tsx';
import { Said } from '../parts/said.tsx';
import { Time } from '../parts/time.tsx';
import type { ConnectedLocation, IssuedToken, PlacedTest, ShownLocation } from '../wire.ts';
import { minorUnitsOf } from './minor-units.ts';
import { QrCode } from './qr-code.tsx';
import { randomKey } from './random-key.ts';

type About = { location: ShownLocation; onDone: () => void; onClose: () => void };

function pathOf({ locationId }: ShownLocation, rest: string): string {
  return `/locations/${encodeURIComponent(locationId)}/${rest}`;
}

const SHOWN_ONCE = 'These steps are shown only once. Do them before you close this.';

/** Registers our webhook at the POS. The answer may have the token, so it is shown only here. */
export function ConnectDialog({ location, onDone, onClose }: About) {
  const connect = async () => {
    const { done, todo } = await ask<ConnectedLocation>('POST', pathOf(location, 'connect'));
    announce(todo.length === 0 ? 'The POS is connected' : `${todo.length} steps are left`);
    onDone();
    return (
      <>
        <StepsList title="Done" steps={done} />
        <StepsList title="Left to do" steps={todo} />
        <p class="faint">{todo.length === 0 ? 'Nothing is left to do.' : SHOWN_ONCE}</p>
      </>
    );
  };
  return (
    <Confirm title="Connect the POS?" action="Connect" onConfirm={connect} onClose={onClose}>
      <p>
        Makes a new token and registers our address at {vendorName(location.integration)}, if its API allows that. Then
        you see what is left to do by hand, once. Earlier tokens stay valid until you revoke them.
      </p>
    </Confirm>
  );
}

function StepsList({ title, steps }: { title: string; steps: readonly string[] }) {
  if (steps.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ol class="connection-steps">
        {steps.map((step) => (
          <li key={step}>
            <Said text={step} />{' '}
            {urlIn(step) !== undefined && <CopyButton text={urlIn(step) ?? ''} label="the address in this step" />}
          </li>
        ))}
      </ol>
    </>
  );
}

function urlIn(step: string): string | undefined {
  return /https?:\/\/[^\s"”'<>]+[^\s"”'<>.,;:!?)]/.exec(step)?.[0];
}

/** The address with a new token. */
export function NewAddress({ url }: { url: string }) {
  return (
    <>
      <p>Enter this address at the POS. It has the token, and is shown only once. Copy it now.</p>
      <Copyable label="the webhook address with the token" text={url} />
    </>
  );
}

/** Makes a token. Its address is shown only here. */
export function TokenDialog({ location, onDone, onClose }: About) {
  const [label, setLabel] = useState('');
  const [days, setDays] = useState('');
  // A repeated request has the same key and the same body, so it makes no second token.
  const last = useRef<{ of: string; body: object; headers: { 'idempotency-key': string } }>(undefined);
  const make = async () => {
    const of = JSON.stringify([label, days]);
    if (last.current?.of !== of) {
      const body = { ...(label.trim() !== '' && { label: label.trim() }), expiresAt: endAfter(days) ?? undefined };
      last.current = { of, body, headers: { 'idempotency-key': randomKey() } };
    }
    const { url } = await ask<IssuedToken>('POST', pathOf(location, 'tokens'), last.current);
    announce('The token is made');
    onDone();
    return <NewAddress url={url} />;
  };
  return (
    <Confirm title="Make a token" action="Make the token" onConfirm={make} onClose={onClose}>
      <p>
        The POS sends its webhooks to an address with this token. It is shown once, after you make it. Earlier tokens
        stay valid until you revoke them.
      </p>
      <Text
        id="token-label"
        label="What it is for"
        placeholder="till, 2027"
        maxLength={200}
        value={label}
        onWrite={setLabel}
      />
      <Expires id="token-expires" days={days} onChoose={setDays} />
    </Confirm>
  );
}

type ConnectLink = { linkId: string; url: string; expiresAt: string };

/** Makes a link with which the owner of the restaurant connects it. */
export function LinkDialog({ location, onDone, onClose }: About) {
  const pos = vendorName(location.integration);
  const make = async () => {
    const { url, expiresAt } = await ask<ConnectLink>('POST', pathOf(location, 'connect-links'));
    announce('The link is made');
    onDone();
    return (
      <>
        <p>
          Send this link to the owner of the restaurant, or let them scan it. It works once, until{' '}
          <Time at={expiresAt} />, and is shown only now.
        </p>
        <Copyable label="the connect link" text={url} />
        <QrCode text={url} label="QR code of the connect link" />
      </>
    );
  };
  return (
    <Confirm title="Make a connect link?" action="Make the link" onConfirm={make} onClose={onClose}>
      <p>
        With the link, the owner of the restaurant signs in at {pos} and agrees that we connect. You get none of their
        passwords. Whoever has the link can use it, so send it only to the owner.
      </p>
    </Confirm>
  );
}

/** Places a test order. */
export function TestOrderDialog({ location, onDone, onClose }: About) {
  const [itemId, setItemId] = useState('');
  const [failed, setFailed] = useState<Extract<PlacedTest, { state: 'failed' }>>();
  const [price, setPrice] = useState('1.00');
  const [currency, setCurrency] = useState('EUR');
  const pos = vendorName(location.integration);
  const { menuOnly } = location.knows;
  const itemMap = location.settings['itemMap'] as { value?: object } | undefined;
  const units = minorUnitsOf(price, currency);
  const place = async () => {
    const placed = await ask<PlacedTest>('POST', pathOf(location, 'test-order'), {
      body: { ...(itemId.trim() !== '' && { itemId: itemId.trim() }), price: units, currency },
    });
    onDone();
    announce(placed.state === 'placed' ? 'The POS took the test order' : 'The POS did not take the test order');
    if (placed.state === 'placed') return <Result placed={placed} pos={pos} />;
    setFailed(placed);
    return false;
  };
  return (
    <Confirm title="Place a test order?" action="Place the test order" onConfirm={place} onClose={onClose}>
      <p>
        <b>The kitchen gets a real ticket</b>, for pickup, named “TEST, do not cook”. Tell the restaurant first. Then
        remove the ticket at the POS.
      </p>
      <Text
        id="test-item"
        label="Item, by its id on the platform"
        hint="Many POS systems refuse an item that is not on their menu. Enter the id of one that is."
        isCode
        isRequired={menuOnly}
        placeholder={menuOnly ? undefined : 'test-item'}
        offers={Object.keys(itemMap?.value ?? {}).map((id) => [id])}
        value={itemId}
        onWrite={setItemId}
      />
      <div class="field-row">
        <Text
          id="test-price"
          label="Price"
          inputMode="decimal"
          problem={units === undefined ? 'Enter an amount such as 12.50.' : undefined}
          value={price}
          onWrite={setPrice}
        />
        <Text
          id="test-currency"
          label="Currency"
          maxLength={3}
          problem={currency.length === 3 ? undefined : 'Enter its three letters, such as EUR.'}
          value={currency}
          onWrite={(text) => setCurrency(text.toUpperCase())}
        />
      </div>
      {failed && <Failed {...failed} />}
    </Confirm>
  );
}

function Result({ placed, pos }: { placed: Extract<PlacedTest, { state: 'placed' }>; pos: string }) {
  const { providerOrderId, callOutCode } = placed;
  return (
    <>
      <p>
        <Badge tone="good">taken</Badge> {pos} took the order. Look for the ticket there, then remove it.
      </p>
      <dl>
        <Fact name="Ticket">
          {providerOrderId === null ? 'the POS named no id' : <code>{printable(providerOrderId)}</code>}
        </Fact>
        <Fact name="Code">{callOutCode && <code>{callOutCode}</code>}</Fact>
      </dl>
      <p class="faint">Here the order has ended. What the POS says about it from now on changes nothing.</p>
    </>
  );
}
