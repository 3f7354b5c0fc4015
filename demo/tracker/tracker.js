/**
 * The order tracker of the sample platform: one order, followed by `follow.js` alone. It keeps nothing but what it has
 * heard, and draws the page anew from that.
 */
import { follow } from './follow.js';

/** What a member reads at each member state, and whether it is good or bad news. */
const WORDS = {
  placed: ['Order placed', 'It goes to the restaurant, which will confirm it.'],
  sent: ['Order sent', 'The restaurant has it and will confirm it in a moment.'],
  confirmed: ['Confirmed', 'The restaurant has taken your order and begins soon.'],
  preparing: ['Being prepared', 'The kitchen is at work. You read here when it is ready.'],
  ready_for_pickup: ['Ready for pickup', 'Say your code at the counter, and it is yours.', 'good'],
  ready_for_delivery: ['Ready to go', 'It is packed and waits for its courier.'],
  out_for_delivery: ['On its way', 'The courier has your order and is coming to you.'],
  picked_up: ['Picked up', 'Enjoy your meal!', 'good'],
  delivered: ['Delivered', 'Enjoy your meal!', 'good'],
  failed: ['Order failed', 'The restaurant does not have it.', 'bad'],
  cancelled: ['Cancelled', 'The restaurant does not make it.', 'bad'],
};
/** Until the order is read, nobody knows how it ends. */
const STEPS = {
  pickup: ['placed', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'],
  delivery: ['placed', 'confirmed', 'preparing', 'ready_for_delivery', 'out_for_delivery', 'delivered'],
  unknown: ['placed', 'confirmed', 'preparing'],
};
const ENDS = ['picked_up', 'delivered', 'failed', 'cancelled'];
const CONNECTION = {
  connected: 'Live: this page follows your order.',
  late: 'No connection: this may be old.',
  ended: 'You can close this page. Goodbye!',
};

const element = (id) => document.getElementById(id);
/** Writes only what has changed, so that a screen reader says only that. */
const write = (id, text) => {
  if (element(id).textContent !== text) element(id).textContent = text;
};

// The token is in the fragment, which no server sees and a reload keeps.
const token = () => location.hash.slice(1);
addEventListener('hashchange', () => location.reload());

let order = {};
/** When its step began: an update may tell nothing but another time. */
let since;
const url = document.querySelector('meta[name="follow-url"]').content;
const stop = follow({ url, token: renew, onUpdate, onState });

function onUpdate(update) {
  if (update.memberState !== order.memberState) since = update.appliedAt;
  order = update;
  draw();
}

function onState(state) {
  document.body.dataset.connection = state;
  write('connection', CONNECTION[state]);
}

/** The platform gives a new token for one that was its own and is not too old. */
async function renew() {
  const answer = await fetch('/follow-token', { method: 'POST', headers: { authorization: `Bearer ${token()}` } });
  if (answer.status === 401) {
    stop();
    write('title', 'This link does not work');
    write('text', 'Open your order in the app once more.');
    delete document.body.dataset.connection;
    write('connection', '');
  }
  if (!answer.ok) throw new Error(`the platform answered ${answer.status}`);
  const renewed = await answer.text();
  history.replaceState(null, '', `#${renewed}`);
  return renewed;
}

function draw() {
  const { memberState, fulfillment = 'unknown', callOutCode, requestedAt, sequence, reason } = order;
  const [title, text, news] = WORDS[memberState];
  document.title = callOutCode === undefined ? title : `${title} · ${callOutCode}`;
  document.body.dataset.news = news ?? '';
  write('kind', { pickup: 'Pickup', delivery: 'Delivery', unknown: 'Your order' }[fulfillment]);
  const expected = fulfillment === 'delivery' ? order.estimatedDeliveryAt : order.estimatedReadyAt;
  const asked = requestedAt === undefined ? 'As soon as possible' : `Wanted for ${inWords(requestedAt)}`;
  const wanted = expected === undefined ? asked : `Expected at ${inWords(expected)}`;
  write('wanted', news === 'bad' || fulfillment === 'unknown' ? '' : wanted);
  write('title', title);
  write('text', reason ?? text);
  write('code', callOutCode ?? '');
  // An order that could not be read has none, and gets none.
  element('stub').hidden = sequence > 0 && callOutCode === undefined;
  drawSteps(news === 'bad' ? ['placed', memberState] : STEPS[fulfillment]);
}

function drawSteps(steps) {
  // `sent` is a moment of the first step.
  const now = Math.max(0, steps.indexOf(order.memberState));
  const items = steps.map((step, nth) => {
    const item = document.createElement('li');
    item.append(WORDS[step][0], document.createElement('i'));
    item.classList.toggle('done', nth < now || (nth === now && ENDS.includes(step)));
    if (nth === now) item.setAttribute('aria-current', 'step');
    if (nth === now && since !== undefined) item.append(inWords(since));
    return item;
  });
  element('steps').replaceChildren(...items);
}

/** Such as 18:45, with the day where it is another one. */
function inWords(instant) {
  const time = new Date(instant);
  const isToday = time.toDateString() === new Date().toDateString();
  return time.toLocaleString([], { ...(!isToday && { weekday: 'short' }), hour: '2-digit', minute: '2-digit' });
}
