import type { Ticket, TicketLine, TicketModifier } from '../../world/pos/simulator.ts';

/** Renders the kitchen's screen as a page, newest ticket first. It reloads itself without a script. */
export function renderTickets(tickets: readonly Ticket[]): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width">
<title>Kitchen (${tickets.length})</title>
<meta name="color-scheme" content="light dark">
<style>
  body { font: 1rem/1.4 system-ui, sans-serif; margin: 1rem auto; max-width: 64rem; padding: 0 1rem; }
  main { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 18rem), 1fr)); gap: 1rem; }
  article { border: 1px solid light-dark(#999, #666); border-top: 6px solid light-dark(#1b6b3a, #7fd8a0); border-radius: 6px; padding: 0 1rem; }
  article.cancelled { border-top-color: light-dark(#a31515, #ff9d94); }
  h2 { font-size: 1.15rem; margin-block: 0.6rem; }
  ul { padding-left: 1.2rem; }
  li, p { white-space: pre-line; overflow-wrap: anywhere; }
  small { color: light-dark(#555, #aaa); }
</style>
<h1>Kitchen</h1>
<main>
${tickets.length === 0 ? '<p>No tickets yet.</p>' : tickets.map(renderTicket).toReversed().join('\n')}
</main>
</html>
`;
}

function renderTicket(ticket: Ticket): string {
  const { address, callOut, discount, fulfillment, lines, note, providerOrderId, serviceOrderId, requests, wantedAt } =
    ticket;
  const status = ticket.cancelled ? 'CANCELLED' : (ticket.status ?? 'new');
  const items = lines.map((line) => {
    const extras = extrasOf(line.modifiers);
    const note = line.note === undefined ? [] : [line.note];
    return `<li>${escape([inWords(line), ...extras, ...note].join('\n'))}</li>`;
  });
  // A ticket does not know how many decimals its currency has.
  const reduced = discount && `discount: ${discount} minor units`;
  const paragraphs = [wantedAt && wantedInWords(wantedAt), address && `to ${address}`, reduced, note];
  const repeats = requests > 1 ? `, asked for ${requests} times` : '';
  return `<article${ticket.cancelled ? ' class="cancelled"' : ''}>
  <h2>${callOut === undefined ? '' : `${escape(callOut)}, `}${escape(fulfillment)}: ${escape(status)}</h2>
  <ul>${items.join('')}</ul>
  ${paragraphs.map((line) => (line ? `<p>${escape(line)}</p>` : '')).join('')}
  <p><small>${escape(serviceOrderId)}, here ${escape(providerOrderId)}${repeats}</small></p>
</article>`;
}

/** Says when the member wants an order: "wanted for 2027-01-31 18:30 (+01:00)". */
export function wantedInWords(wantedAt: string): string {
  const [, day, minute, offset] = /^([\d-]+)T(\d\d:\d\d)[\d:.]*(Z|[+-][\d:]+)$/.exec(wantedAt) ?? [];
  return `wanted for ${day === undefined ? wantedAt : `${day} ${minute} (${offset === 'Z' ? 'UTC' : offset})`}`;
}

/** One line for each modifier. Nested modifiers follow it, indented. */
function extrasOf(modifiers: readonly TicketModifier[], indent = ''): string[] {
  return modifiers.flatMap((each) => [
    `${indent}${each.quantity > 1 ? inWords(each) : nameOf(each)}`,
    ...extrasOf(each.modifiers ?? [], `${indent}  `),
  ]);
}

/** Some POS systems identify items only by ids of their menu, and a simulator may have no menu. */
const nameOf = ({ reference, name = reference }: TicketLine | TicketModifier): string => name;
const inWords = (sold: TicketLine | TicketModifier): string => `${sold.quantity} × ${nameOf(sold)}`;

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
