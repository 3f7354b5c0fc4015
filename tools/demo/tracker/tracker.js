/**
 * The order tracker of the sample platform. It shows one order and gets all updates through `follow.js`. Its only state
 * is the last update, from which it draws the whole page.
 */
import { follow } from './follow.js';

/** The title and text for each member state, and whether it is good or bad news. */
const WORDS = {
  placed: ['Order placed', 'Your order is on its way to the restaurant, which will confirm it.'],
  sent: ['Order sent', 'The restaurant has your order and will confirm it soon.'],
  confirmed: ['Confirmed', 'The restaurant has accepted your order and will begin soon.'],
  preparing: ['Being prepared', 'The kitchen is preparing your order. This page shows when it is ready.'],
  ready_for_pickup: ['Ready for pickup', 'Say your code at the counter to get your order.', 'good'],
  ready_for_delivery: ['Ready to go', 'Your order is packed and waits for the courier.'],
  out_for_delivery: ['On its way', 'The courier has your order and is coming to you.'],
  picked_up: ['Picked up', 'Enjoy your meal!', 'good'],
  delivered: ['Delivered', 'Enjoy your meal!', 'good'],
  failed: ['Order failed', 'The restaurant does not have your order.', 'bad'],
  cancelled: ['Cancelled', 'The restaurant does not prepare your order.', 'bad'],
};
/** The steps by type. Until the service has fetched the order, its type is unknown, and so are its last steps. */
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
/** Writes a text only if it has changed, so that a screen reader reads out only changes. */
const write = (id, text) => {
  if (element(id).textContent !== text) element(id).textContent = text;
};

// The token is in the fragment of the URL: browsers do not send it to a server, and it survives a reload.
const token = () => location.hash.slice(1);
addEventListener('hashchange', () => location.reload());

let order = {};
/** When the current step began. An update may change only an estimated time and does not begin a step. */
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

/** The platform exchanges one of its tokens for a new one, unless it is too old. */
async function renew() {
  const answer = await fetch('/follow-token', { method: 'POST', headers: { authorization: `Bearer ${token()}` } });
  if (answer.status === 401) {
    stop();
    write('title', 'This link does not work');
    write('text', 'Open your order in the app again.');
    delete document.body.dataset.connection;
    write('connection', '');
  }
  if (!answer.ok) throw new Error(`the platform answered ${answer.status}`);
  const { token: renewed, restaurant } = await answer.json();
  history.replaceState(null, '', `#${renewed}`);
  write('restaurant', restaurant ?? '');
  return renewed;
}

function draw() {
  const { memberState, fulfillment = 'unknown', callOutCode, requestedAt, sequence, reason } = order;
  const [title, text, news] = WORDS[memberState];
  document.title = callOutCode === undefined ? title : `${title} · ${callOutCode}`;
  document.body.dataset.news = news ?? '';
  write('kind', { pickup: 'Pickup', delivery: 'Delivery', unknown: 'Your order' }[fulfillment]);
  const wanted = requestedAt === undefined ? 'As soon as possible' : `Wanted for ${inWords(requestedAt)}`;
  write('wanted', news === 'bad' || fulfillment === 'unknown' ? '' : wanted);
  const estimate = estimateInWords();
  write('title', estimate ?? title);
  write('text', reason ?? (estimate === undefined ? text : `${title}. ${text}`));
  write('code', callOutCode ?? '');
  // Every order that was fetched has a code. If a live message has none, the order could not be fetched.
  element('stub').hidden = sequence > 0 && callOutCode === undefined;
  drawSteps(news === 'bad' ? ['placed', memberState] : STEPS[fulfillment]);
}

/** What a member wants to know first: when. An estimate that has passed is no news. */
function estimateInWords() {
  const { memberState, fulfillment, estimatedReadyAt, estimatedDeliveryAt } = order;
  const [at, words] = fulfillment === 'delivery' ? [estimatedDeliveryAt, 'With you'] : [estimatedReadyAt, 'Ready'];
  if (at === undefined || memberState === 'ready_for_pickup' || ENDS.includes(memberState)) return undefined;
  return new Date(at) > new Date() ? `${words} at about ${inWords(at)}` : undefined;
}

function drawSteps(steps) {
  // `sent` is not in the list of steps and counts as the first step.
  const now = Math.max(0, steps.indexOf(order.memberState));
  const items = steps.map((step, nth) => {
    const item = document.createElement('li');
    item.append(WORDS[step][0], document.createElement('i'));
    item.classList.toggle('done', nth < now || (nth === now && ENDS.includes(step)));
    if (nth === now) item.setAttribute('aria-current', 'step');
    if (nth === now && since !== undefined) {
      const time = document.createElement('time');
      time.append(inWords(since));
      item.append(time);
    }
    return item;
  });
  element('steps').replaceChildren(...items);
}

/** Formats a time such as 18:45, with the weekday if it is not today. */
function inWords(instant) {
  const time = new Date(instant);
  const isToday = time.toDateString() === new Date().toDateString();
  return time.toLocaleString([], { ...(!isToday && { weekday: 'short' }), hour: '2-digit', minute: '2-digit' });
}
