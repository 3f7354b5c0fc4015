/*
 * The life of one placement: two workers that may crash between any two steps, the platform, the POS, the clock and a
 * person. Each option of a loop is one commit of src/core or one call, and names its file. Spin searches all states
 * (test/system/model.test.ts), and each `CLAIM` must be true: at most one ticket; no ticket is begun after a committed
 * cancel; an announced step is never taken back; every order ends; a cancel of the platform is not lost; a withdrawn or
 * failed order has no ticket; a cancel in doubt is not repeated.
 *
 * What goes wrong or comes early costs one of FAULTS. Without faults everything works, and nothing is repeated until
 * its result may change. So the states have no cycle, and every run stops. Then the last process claims that the order
 * has ended. With four faults the search is complete as well: up to 15 million states, in two minutes.
 *
 * Simplified: `held` is `waiting`. A claim reads the order in the same step. Cancels and refreshes have one worker each.
 * A dead process's lease has expired. A restore may lose an order before it was read here. Left out: a changed order, a
 * skipped order, an operator's cancel, a refresh that is given up. Ranks are 0 placed, 1 sent, 2 to 5 progress, 6 completed, 7 failed, 8 cancelled.
 *
 * -DDEDUP=0 a ticket for each request, 1 one ticket for ever, 2 one ticket for some time; -DFIND=1 the POS has
 * findOrder; -DCANCELS=1 a repeated cancel does no harm; -DWITHOUT=<guard> removes a guard; -DTRACE accepts a history.
 */
#ifndef FAULTS
#define FAULTS 3
#define DEDUP 1
#define FIND 0
#define CANCELS 0
#define WITHOUT 0
#endif

#ifdef TRACE /* The next event must be the next of the history. Then a path that goes on to its end is an "error". */
c_decl { \#include "history.h" }
byte at, seen; bit strange;
#define SEE(event) seen = event; if :: c_expr { history[now.at] == now.seen } -> at++ :: else -> strange = 1 fi
#define CLAIM(what) if :: what :: else -> strange = 1 fi
#define FOLLOWS provided (!strange)
#define PAY skip
#define PROGRESS 5
#define LATE 6
#else
#define SEE(event) skip
#define CLAIM(what) assert(what)
#define FOLLOWS
#define PAY faults--
#define PROGRESS 2
#define LATE 2
#endif
#define CREATES 1 /* the row of a createOrder is committed; of a findOrder; of a cancelOrder; the POS makes a ticket */
#define FINDS 2
#define CANCELS_IT 3
#define TICKET 4
#define REQUESTED 5 /* a message that the cancel is requested; that it is refused; 16 + rank: a step; 33: the end */
#define REFUSED_IT 6
#define STEP 16

/* As in chaos/guards.ts, with _ for -. Those in the last line have no mark in src. */
mtype = { no_ticket_after_cancel, attempt_written, no_late_call, lease_covers_call, unsure_503, ask_before_retry,
  no_retry_once_cancelled, absent_after, cancel_written, died_in_doubt, lost_in_doubt, doubt_not_repeated, cancel_lock,
  signal_refreshes, refresh_ends, higher_rank, order_lock, early_end_notified, fetched_under_lease, waiting_is_due,
  repeat_may_arrive, doubt_stays,
  look_up_after, doubt_needs_lease };
#define HAS(guard) (WITHOUT != guard)

mtype = { WAITING, IN_DOUBT, SENT, FAILED, WITHDRAWN };                   /* placements.state */
mtype = { NONE, DUE, ASKED, UNSURE, BY_PHONE, REFUSED, CANCELLED, OVER }; /* cancellations.state */
mtype = { IDLE, FETCHED, START, FIND_ORDER, ABSENT, SEND, CALL, CALLING,  /* what a worker does next */
  STORE, FAIL, FAIL_LATE, LATER, ASK, OFF, WITHDRAW,                      /* what it decided: Decision */
  CANCEL, REFUSE, PROMISED, DOUBT };                                      /* CancelDecision has some of these too */

byte faults = FAULTS;
/* placements. lease: 0 nobody; 1, 2 a worker; 3, 4 the same worker, whose lease has expired */
mtype state = WAITING; byte lease;
bit person, late, old;                   /* next_attempt_at is infinity; deadline_at; request_ended_at is 60 s ago */
/* placement_attempts. open: the call without an end: 1, 2 a worker's createOrder; 3, 4 its findOrder */
byte open;
/* orders, cancellations, refreshes (1 due; 2, 3 the platform answered without or with a cancel) */
bit exists, ended; byte rank;
mtype cancel = NONE; bit cancelOpen, calledOff; /* cancellations.fails_with: the order fails once its ticket is gone */
byte refresh; bit again;
/* The platform: 1 the member cancelled, 2 and a signal came. The POS: 0 no ticket, 1 a ticket, 2 to 8 its rank */
byte cancels, stage;
bit stray, longAgo, forgot;              /* a request may still arrive; the POS may forget our key; it forgot */
/* The worker of cancels. unknown: a request to cancel may have done something, and nobody knows */
mtype does = IDLE; bit cDoubt, cOld, unknown; byte read, hook; /* read without a lock; a webhook's rank */

typedef Job { mtype at; bit doubt, old, late, cancelled, called, taken }
Job job[2];

#define me (_pid + 1)
#define J job[_pid]
#define MINE ((lease == me || lease == me + 2) && UNFINISHED)
#define LIVE (lease == 1 || lease == 2)
#define UNFINISHED (state == WAITING || state == IN_DOUBT)
#define SENDING (open == 1 || open == 2)
#define CANCELLING (cancel == DUE || cancel == ASKED || cancel == UNSURE || cancel == BY_PHONE)
#define MAY_HAVE_TICKET (SENDING || state == SENT || state == IN_DOUBT)     /* changed-order.ts */
#define CANCEL_IS_KNOWN (cancels < 2 || !exists || ended || (cancel != NONE && !calledOff) || refresh > 0)
#define KEEPS_DOUBT (J.doubt && HAS(doubt_stays)) /* conclude-placement.ts: keepDoubt */
/* settle-doubt.ts: the order may be sent again */
#define REPEATS(isCancelled) (!((isCancelled) && HAS(no_retry_once_cancelled)) && !late && !(DEDUP == 2 && longAgo) && \
  (DEDUP > 0 || !HAS(ask_before_retry)))
/* A question to the POS would be answered as before: no ticket, too early to believe it. */
#define NOT_YET (state == IN_DOUBT && !SENDING && !ended && !stage && !old)

/* An order moves, and its live message is in the same commit: live/outbox.ts. An announced step is never taken back. */
inline moves(r) { CLAIM(r >= rank); rank = r; SEE(STEP + r) }
inline finish(to) { state = to; person = 0; late = 0; old = 0; open = 0; lease = 0 }
inline enterDoubt() { state = IN_DOUBT; old = 0; open = 0; J.doubt = 1 } /* placement-sql.ts */
inline storeOrderRef() { /* placement-outcomes.ts */
  if :: UNFINISHED -> finish(SENT) :: else fi;
  if :: rank < 1 && !ended -> moves(1) :: else fi
}
inline endCancelled() { /* placement-outcomes.ts, of the POS or the restaurant */
  CLAIM(!calledOff || !stage || stage > 5);
  if :: UNFINISHED -> finish(SENT) :: else fi;
  if :: calledOff && rank < 7 -> moves(7) :: !calledOff && rank < 8 -> moves(8) :: else fi;
  ended = 1; unknown = 0; cancelOpen = 0;
  if :: cancel != NONE -> cancel = CANCELLED :: else fi
}
inline endWithdrawn() { /* placement-outcomes.ts: endCancelled of an order that was never sent. It has no ticket. */
  if
  :: exists && UNFINISHED && !ended && !SENDING -> CLAIM(!stage && !stray);
    if :: calledOff -> finish(FAILED) :: else -> finish(WITHDRAWN) fi;
    endCancelled()
  :: else
  fi
}
inline beginCancellation(notifies) { /* begin-cancellation.ts */
  cancel = DUE; calledOff = 0;
  if :: notifies -> SEE(REQUESTED) :: else fi;
  if :: UNFINISHED && !open -> person = 0; lease = 0 :: else fi;
  if :: !(notifies) -> endWithdrawn() :: else fi
}
inline refuseCancellation() { /* begin-cancellation.ts */
  if
  :: CANCELLING && !ended -> cancel = REFUSED; unknown = 0; cancelOpen = 0;
    if :: calledOff :: else -> SEE(REFUSED_IT) fi
  :: else
  fi
}
inline restart() { /* placement-sql.ts: RESTART. The member may hear again of an order that was never read. */
  if :: state == FAILED && !exists -> state = WAITING; rank = 0 :: else fi
}
inline signal() { /* record-signal.ts */
  restart();
  if
  :: HAS(signal_refreshes) && (exists -> !ended : LIVE) -> again = refresh > 1; refresh = (again -> refresh : 1)
  :: else
  fi;
  CLAIM(CANCEL_IS_KNOWN)
}
inline endRefresh() { /* refresh-order.ts */
  refresh = again && HAS(refresh_ends); again = 0; read = 0; CLAIM(CANCEL_IS_KNOWN)
}
inline webhook(r, was) { /* apply-events.ts */
  if
  :: r > was || !HAS(higher_rank) -> if :: UNFINISHED -> finish(SENT) :: else fi; moves(r); ended = ended || r > 5
  :: else
  fi
}
inline makeTicket() { /* The POS makes at most one ticket. */
  if :: stage && (DEDUP == 1 || (DEDUP == 2 && !forgot)) :: else -> CLAIM(!stage); stage = 1; SEE(TICKET) fi
}
inline idle() {
  d_step { J.at = IDLE; J.doubt = 0; J.old = 0; J.late = 0; J.cancelled = 0; J.called = 0; J.taken = 0 }
}
inline leave() { if :: MINE -> lease = 0 :: else fi; idle() }
inline decide(isCancelled, isLate) { /* place-order.ts: tryToPlace; settle-doubt.ts */
  if
  :: isCancelled && !J.doubt -> J.at = WITHDRAW
  :: !(isCancelled && !J.doubt) && faults -> PAY; J.at = LATER /* paused, no free worker, wrong settings */
  :: !(isCancelled) && !J.doubt && isLate -> J.at = FAIL_LATE
  :: !(isCancelled) && !J.doubt && !(isLate) -> J.at = SEND
  :: J.doubt && faults -> PAY; J.at = ASK /* its location has left the POS */
  :: J.doubt && REPEATS(isCancelled) -> J.at = SEND
  :: J.doubt && !REPEATS(isCancelled) && !FIND -> J.at = ((isLate) && !(isCancelled) && DEDUP -> OFF : ASK)
  :: J.doubt && !REPEATS(isCancelled) && FIND ->
    J.at = FIND_ORDER; J.old = old; J.late = isLate; J.cancelled = isCancelled
  fi
}
inline endAttempt() { /* record-attempt.ts: END_ATTEMPT */
  if :: open == me || open == me + 2 -> open = 0 :: else fi
}
inline postpone(to, forPerson) { /* conclude-placement.ts: POSTPONE */
  if :: J.called && (!J.taken || MINE || !HAS(doubt_needs_lease)) -> endAttempt() :: else fi;
  if
  :: MINE -> state = to; old = old && !J.taken;
    person = forPerson || (person && (to == IN_DOUBT || !HAS(waiting_is_due)))
  :: else
  fi;
  leave()
}
inline lost() { /* place-order.ts: the answer is lost or proves nothing, and the POS may have the order */
  J.taken = HAS(repeat_may_arrive) || !J.doubt; J.doubt = 1; J.at = (DEDUP || FIND -> LATER : ASK)
}

active [2] proctype worker() FOLLOWS {
  idle();
end: do
  /* claim-placements.ts; refetch-order.ts, fetchOnce */
  :: atomic { J.at == IDLE && UNFINISHED && !person && !LIVE && (_pid == 0 || job[0].at != IDLE) &&
      !(FIND && exists && NOT_YET && !REPEATS(cancel != NONE)) ->
    lease = me; J.doubt = state == IN_DOUBT;
    if
    :: SENDING -> J.at = START; J.late = late
    :: !SENDING && exists && ended -> J.at = (J.doubt -> ASK : FAIL)
    :: !SENDING && exists && !ended -> decide(cancel != NONE, late)
    :: !exists && late && !KEEPS_DOUBT -> J.at = FAIL_LATE
    :: !exists && (!late || KEEPS_DOUBT) -> J.at = FETCHED; J.cancelled = cancels > 0; J.late = late
    :: !exists && (!late || KEEPS_DOUBT) && faults -> PAY; J.doubt = KEEPS_DOUBT; J.at = LATER /* the platform is down */
    :: !exists && (!late || KEEPS_DOUBT) && faults -> PAY; J.at = (KEEPS_DOUBT -> ASK : FAIL) /* it has no such order */
    fi }
  /* place-order.ts: startJob. A process died in a call */
  :: atomic { J.at == START ->
    if :: MINE -> enterDoubt() :: else -> J.doubt = 1 fi;
    if :: ended -> J.at = ASK :: else -> decide(cancel != NONE, J.late) fi }
  /* record-order.ts */
  :: atomic { J.at == FETCHED ->
    if
    :: MINE && (lease == me || !HAS(fetched_under_lease)) ->
      if :: exists :: else -> exists = 1; moves(0); cancel = (J.cancelled -> DUE : NONE); CLAIM(CANCEL_IS_KNOWN) fi;
      decide(J.cancelled, J.late)
    :: else -> leave()
    fi }
  /* settle-doubt.ts: lookUp. The row of the call and the call; then the end of a call that found nothing */
  :: atomic { J.at == FIND_ORDER ->
    if
    :: lease == me && UNFINISHED && !ended -> open = me + 2; J.called = 1; SEE(FINDS);
      if
      :: stage -> J.at = STORE
      :: !stage -> J.at = (J.old || !HAS(look_up_after) -> ABSENT : LATER)
      :: faults -> PAY; J.at = (J.late && !J.cancelled -> OFF : LATER)
      fi
    :: else -> leave()
    fi }
  :: atomic { J.at == ABSENT -> endAttempt(); J.called = 0;
    if
    :: J.cancelled -> J.at = WITHDRAW
    :: !J.cancelled && DEDUP -> J.at = (J.late -> OFF : ASK)
    :: !J.cancelled && !DEDUP -> J.doubt = 0; J.at = (J.late -> FAIL_LATE : SEND)
    fi;
    J.old = 0; J.late = 0; J.cancelled = 0 }
  /* record-attempt.ts: beginAttempt of createOrder */
  :: atomic { J.at == SEND ->
    if
    :: lease == me && UNFINISHED && !ended && (cancel == NONE || !HAS(no_ticket_after_cancel)) ->
      CLAIM(cancel == NONE); /* no ticket is begun after a committed cancel */
      J.at = CALL; open = (HAS(attempt_written) -> me : 0); SEE(CREATES)
    :: else -> J.at = LATER
    fi }
  /* call-provider.ts: the call begins; what the POS does and answers */
  :: atomic { J.at == CALL -> J.at = CALLING; J.called = 1 }
  :: atomic { J.at == CALLING ->
    if
    :: makeTicket(); J.at = STORE
    :: !stage || faults -> /* refused */
      if :: stage -> PAY :: else fi; J.taken = J.doubt; J.at = (J.doubt -> OFF : FAIL)
    :: faults -> PAY; stray = 1; lost()
    :: faults && !HAS(unsure_503) -> PAY; stray = 1; J.at = LATER /* 5xx or 408 */
    :: faults -> PAY; J.at = LATER /* not reached, or busy */
    fi }
  /* conclude-placement.ts */
  :: atomic { J.at == STORE -> storeOrderRef(); idle() }
  :: atomic { J.at == FAIL || J.at == FAIL_LATE ->
    if
    :: MINE && (J.at == FAIL || late) -> CLAIM(!stage && !stray); finish(FAILED);
      if :: rank <= 1 && !(ended && !HAS(early_end_notified)) -> moves(7); ended = exists :: else fi;
      idle()
    :: !MINE && J.at == FAIL -> if :: J.called -> endAttempt() :: else fi; idle()
    :: else -> J.at = LATER
    fi }
  :: atomic { J.at == LATER -> if :: J.doubt -> postpone(IN_DOUBT, 0) :: else -> postpone(WAITING, 0) fi }
  :: atomic { J.at == ASK -> postpone(IN_DOUBT, 1) }
  /* placement-outcomes.ts: callOff */
  :: atomic { J.at == OFF -> if :: MINE && exists && !ended && cancel == NONE -> cancel = DUE; calledOff = 1 :: else fi;
    J.at = ASK }
  :: atomic { J.at == WITHDRAW -> endWithdrawn(); if :: state == WITHDRAWN -> idle() :: else -> J.at = LATER fi }
  /* work-placements.ts: the process dies, or Postgres fails */
  :: atomic { J.at != IDLE && faults -> PAY; if :: J.at == CALLING -> stray = 1 :: else fi; leave() }
  od
}

active proctype refresher() FOLLOWS { /* refresh-order.ts */
end: do
  :: atomic { refresh == 1 && (exists || !LIVE) ->
    if :: exists && !ended -> refresh = (cancels -> 3 : 2) :: else -> restart(); endRefresh() fi }
  :: atomic { refresh > 1 && !HAS(cancel_lock) && !read -> read = 1 + MAY_HAVE_TICKET }
  :: atomic { refresh > 1 && (HAS(cancel_lock) || read) ->
    read = (read -> read == 2 : MAY_HAVE_TICKET);
    if
    :: refresh == 3 && exists && !ended && (cancel == NONE || (calledOff && cancel == REFUSED)) -> beginCancellation(read)
    :: refresh == 3 && calledOff && CANCELLING -> calledOff = 0
    :: else
    fi;
    endRefresh() }
  :: atomic { refresh > 1 && faults -> PAY; refresh = 1; again = 0; read = 0 } /* the process dies */
  od
}

active proctype canceller() FOLLOWS {
end: do
  /* claim-cancellations.ts; cancel-at-pos.ts: endDied; readBack, or begin-cancellation.ts: beginCancel */
  :: atomic { does == IDLE && (cancel == DUE || cancel == ASKED || cancel == UNSURE) && !ended &&
      (state == SENT || (state == IN_DOUBT && person)) && !(NOT_YET && cancel == DUE && HAS(absent_after)) ->
    cDoubt = state == IN_DOUBT; cOld = cDoubt && (old || !HAS(absent_after));
    if :: cancelOpen && HAS(died_in_doubt) -> cancel = UNSURE :: else fi;
    cancelOpen = 0;
    if
    :: cancel == ASKED || (cancel == UNSURE && !CANCELS && HAS(doubt_not_repeated)) ->
      if :: does = (stage == 8 -> CANCEL : ASK) :: faults -> PAY; does = LATER fi
    :: else -> does = CALLING; cancelOpen = HAS(cancel_written); SEE(CANCELS_IT)
    fi }
  :: atomic { does == CALLING ->
    CLAIM(CANCELS || !unknown); /* a cancel in doubt is not repeated */
    if
    :: stage && stage < 6 -> stage = 8; does = CANCEL
    :: stage && stage < 6 -> does = PROMISED
    :: stage -> does = (cDoubt -> ASK : REFUSE)
    :: !stage -> does = (!cDoubt -> ASK : (cOld -> WITHDRAW : LATER))
    :: does = ASK /* the POS cannot cancel */
    :: faults -> PAY; does = LATER /* not reached, or busy */
    :: faults -> PAY; unknown = 1; does = (CANCELS || !HAS(lost_in_doubt) -> LATER : DOUBT);
      if :: stage && stage < 6 -> stage = 8 :: skip fi
    fi }
  /* conclude-cancellation.ts */
  :: atomic { does != IDLE && does != CALLING -> cancelOpen = 0;
    if
    :: does == CANCEL -> endCancelled()
    :: does == REFUSE -> refuseCancellation()
    :: does == WITHDRAW -> endWithdrawn()
    :: CANCELLING && does == PROMISED -> cancel = ASKED
    :: CANCELLING && does == DOUBT -> cancel = UNSURE
    :: CANCELLING && does == ASK -> cancel = BY_PHONE; unknown = 0; if :: state == IN_DOUBT -> person = 1 :: else fi
    :: else
    fi;
    does = IDLE; cDoubt = 0; cOld = 0 }
  /* work-cancellations.ts: the process dies */
  :: atomic { does != IDLE && faults -> PAY; unknown = unknown || does == CALLING;
    if :: does == CALLING && stage && stage < 6 -> stage = 8 :: skip fi; does = IDLE; cDoubt = 0; cOld = 0 }
  od
}

active proctype people() FOLLOWS { /* A person looks when no request can arrive any more. */
end: do
  /* resolve-doubt.ts */
  :: atomic { state == IN_DOUBT && !LIVE && (person || faults) && (stage || !stray) ->
    if :: person :: else -> PAY fi;
    if
    :: stage -> storeOrderRef()
    :: else -> state = WAITING; open = 0; person = 0; old = 0; lease = 0;
      if :: cancel != NONE -> endWithdrawn() :: else fi
    fi }
  /* operator-cancellations.ts: concludeByPhone */
  :: atomic { CANCELLING && (cancel == BY_PHONE || faults) && !ended && does == IDLE && !(SENDING && UNFINISHED) &&
      MAY_HAVE_TICKET && (stage || !stray) ->
    if :: cancel == BY_PHONE :: else -> PAY fi;
    if
    :: stage < 6 || stage == 8 -> stage = (stage -> 8 : 0); endCancelled()
    :: stage && stage < 8 -> if :: UNFINISHED -> storeOrderRef() :: else fi; refuseCancellation()
    fi }
  od
}

active proctype world() FOLLOWS { /* the platform, the network, the POS */
end: do
  :: atomic { cancels == 0 && !ended -> cancels = 1 }
  :: atomic { cancels == 1 -> cancels = 2; signal() }
  :: atomic { faults && !ended -> PAY; signal() }
#ifndef TRACE
  /* recover-orders.ts: a restore lost the order, which may have been sent */
  :: atomic { faults && !exists && state == WAITING && !LIVE && !rank -> PAY; state = IN_DOUBT; lease = 0;
    if :: stage = 1 :: skip fi }
#endif
  :: atomic { stray -> stray = 0; makeTicket() }
  :: atomic { stray -> stray = 0 }
  :: atomic { stage && stage < 6 -> if :: stage < PROGRESS -> stage++ :: stage = 6 :: stage = 7 :: stage = 8 fi }
  :: atomic { HAS(order_lock) && stage > 1 && stage > rank -> webhook(stage, rank) }
  :: atomic { stage > 2 && faults -> PAY; select (hook : 2 .. LATE); /* a late webhook */
    if :: hook < stage -> webhook(hook, rank) :: else fi; hook = 0 }
  :: atomic { !HAS(order_lock) && !hook && stage > 1 && stage > rank -> hook = stage; read = rank }
  :: atomic { !HAS(order_lock) && hook -> webhook(hook, read); hook = 0; read = 0 }
  od
}

active proctype clock() FOLLOWS {
end: do
  /* A lease is longer than its call. A process that was suspended before the call does not begin it. */
  :: atomic { faults && LIVE && UNFINISHED && job[lease - 1].at != IDLE &&
      (job[lease - 1].at != CALLING || !HAS(lease_covers_call)) -> PAY;
    if :: job[lease - 1].at == CALL && HAS(no_late_call) -> job[lease - 1].at = LATER :: else fi;
    lease = lease + 2 }
  :: atomic { state == IN_DOUBT && !old && !stray -> old = 1 }
  :: atomic { UNFINISHED && !late && faults -> PAY; late = 1 }
  :: atomic { DEDUP == 2 && exists && UNFINISHED && !longAgo && faults -> PAY; longAgo = 1 }
  :: atomic { longAgo && !forgot && !stray && job[0].at == IDLE && job[1].at == IDLE -> forgot = 1 }
  /* retention-rules.ts: endOrders, after a day */
  :: atomic { exists && !ended && state != WAITING && !LIVE && !stray && !refresh &&
      (!CANCELLING || cancel == BY_PHONE) && job[0].at == IDLE && job[1].at == IDLE && does == IDLE -> ended = 1 }
  /* sweep-cancellations.ts: the order has ended; ten minutes have passed */
  :: atomic { CANCELLING && ended ->
    cancel = (rank == 8 -> CANCELLED : (rank == 6 -> REFUSED : OVER)); unknown = 0; cancelOpen = 0 }
  :: atomic { CANCELLING && !ended && cancel != BY_PHONE && does == IDLE && state != WAITING && faults -> PAY;
    cancel = BY_PHONE; unknown = 0; cancelOpen = 0; if :: state == IN_DOUBT -> person = 1 :: else fi }
  od
}

#ifdef TRACE
active proctype end_of_history() FOLLOWS {
  atomic { !UNFINISHED && c_expr { history[now.at] > 32 && !history[now.at + 1] } ->
    SEE((state == SENT -> 33 : (state == FAILED -> 34 : 35))); !strange -> assert(false) }
}
#else
#define IS_OVER (!UNFINISHED && (!exists || ended) && !CANCELLING && !refresh && (state != FAILED || rank > 1))
active proctype end_of_all() { end: timeout -> CLAIM(IS_OVER) }
#endif
