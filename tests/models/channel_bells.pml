/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel with two locks and two bells (drover/sync/byte_channel*.{h,cc}, docs/queues.md): P producers with ITEMS records each, C consumers
 * (one or two of each),
 * a ring of CAP pieces, a closer. The records of the first STREAM producers have two pieces: their producer holds its lock from the first to
 * the second, and so does their consumer. Each process may be killed at any step; a lock whose holder died is free (LockWord finds that out).
 *
 * Each step that others can see is one step here. What is published is followed by an exchange (the unlock) before the bell is looked at, so
 * no store is delayed beyond that; -DBUG_RING_FIRST is what a delay would be.
 *
 * HANG: a consumer may be busy for ever with what it has taken.
 *
 * Checked when nothing moves any more (monitor): all that is published has been taken, if a consumer lives; no live process sleeps when there is
 * something for it to do; without deaths each record was delivered once. With deaths sleepers look again when nothing else moves (slices).
 * Checked always: what a consumer takes is what the producer wrote there; no record is delivered twice.
 */
#ifndef P
#define P 2
#endif
#ifndef C
#define C 2
#endif
#ifndef ITEMS
#define ITEMS 1
#endif
#ifndef CAP
#define CAP 1
#endif
#ifndef STREAM
#define STREAM 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef EARLY
#define EARLY 0              /* 1: the closer does not wait for the second producer */
#endif
#define N (P + C)
#define LOOKS (DEATHS > 0 -> 4 : 0)
#define PIECES (P * ITEMS * 2)

byte slot[CAP];              /* what the memory holds: record * 4 + kind; kind 0: whole, 1: first, 2: last */
byte meant[PIECES];          /* what was meant to be published at each position: for the checks alone */
byte delivered[P * ITEMS];   /* likewise */
byte head, tail;
byte plock, clock;           /* 0: free, else its holder + 1 */
byte filled, freed;          /* the bells: odd: somebody sleeps, or is about to */
bit asleep[N], dead[N + 1], done[N], busy[N];
byte state;                  /* 0: open, 1: closing, 2: closed */
byte kills;

#define DIE atomic { kills < DEATHS -> kills++; goto die }
#define EMPTY (head == tail)
#define ROOM (head - tail < CAP)
#define FREE(lock) (lock == 0 -> 1 : dead[lock - 1])

#define LOCK(lock) \
	if \
	:: DIE \
	:: atomic { FREE(lock) -> lock = id + 1 } \
	fi
#define TRY(lock) \
	if \
	:: DIE \
	:: atomic { \
		if \
		:: FREE(lock) -> lock = id + 1; got = 1 \
		:: else -> got = 0 \
		fi \
	} \
	fi
#define STEP(what) \
	if \
	:: DIE \
	:: atomic { what } \
	fi
#define ANNOUNCE(bell) STEP(if :: bell % 2 == 0 -> bell = bell + 1 :: else fi; seen = bell)

/* Bell::ring, for one of the sleepers first .. last - 1. */
#ifdef BUG_SAME_WORD
#define CHANGED(word) (word - 1)
#else
#define CHANGED(word) ((word + 1) % 16)
#endif
#define RING(bell, first, last) \
	STEP(x = bell); \
	do \
	:: x % 2 == 0 -> break \
	:: x % 2 == 1 -> \
		STEP(if :: bell == x -> bell = CHANGED(x); x = 16 :: else -> x = bell fi); \
		if \
		:: x == 16 -> \
			if \
			:: DIE \
			:: atomic { \
				if \
				:: asleep[first] -> asleep[first] = 0 \
				:: last - first > 1 && asleep[last - 1] -> asleep[last - 1] = 0 \
				:: else \
				fi; \
				x = 0 } \
			fi \
		:: else \
		fi \
	od

#ifdef BUG_NO_PASS_ON
#define PASS_ON(bell, more, first, last) slept = 0
#else
#define PASS_ON(bell, more, first, last) \
	if \
	:: slept -> \
		ANNOUNCE(bell); \
		slept = 0; \
		if \
		:: more -> RING(bell, first, last) \
		:: else \
		fi \
	:: else \
	fi
#endif

/* futex wait: compares and blocks in one step */
#define SLEEP(bell) \
	STEP(if :: bell == seen -> asleep[id] = 1 :: else fi); \
	if \
	:: DIE \
	:: !asleep[id] \
	fi

/* ChannelWrite::lock, ChannelRead::lock: who was woken and cannot get the lock passes the ring on */
#ifdef BUG_NO_PASS_AT_LOCK
#define ENTER(lock, bell, first, last) LOCK(lock)
#else
#define ENTER(lock, bell, first, last) \
	if \
	:: slept -> \
		TRY(lock); \
		if \
		:: got \
		:: !got -> \
			ANNOUNCE(bell); \
			RING(bell, first, last); \
			slept = 0; \
			LOCK(lock) \
		fi \
	:: !slept -> LOCK(lock) \
	fi
#endif

#define ALL_P 0, P
#define ALL_C P, N

#ifdef BUG_HEAD_FIRST
#define PUBLISH(value) STEP(meant[head] = value; head++); STEP(slot[(head - 1) % CAP] = value)
#else
#define PUBLISH(value) STEP(slot[head % CAP] = value); STEP(meant[head] = value; head++)
#endif

proctype producer(byte id)
{
	byte k, seen, x;
	bit slept, got;
	do
	:: k == ITEMS -> break
	:: k < ITEMS ->
begin:
		ENTER(plock, freed, 0, P);
		if
		:: state != 0 -> STEP(plock = 0); break
		:: state == 0 && !ROOM ->
			STEP(plock = 0);
again:
			ANNOUNCE(freed);
			slept = 1;
#ifndef BUG_NO_RECHECK_P
			if
			:: ROOM || state != 0 -> goto begin
			:: !(ROOM || state != 0)
			fi;
#endif
			SLEEP(freed);
			if
			:: ROOM || state != 0 -> goto begin
			:: !(ROOM || state != 0) -> goto again
			fi
		:: state == 0 && ROOM && id >= STREAM ->
#ifdef BUG_RING_FIRST
			RING(filled, P, N);
			PUBLISH((id * ITEMS + k) * 4);
			STEP(plock = 0)
#else
			PUBLISH((id * ITEMS + k) * 4);
			STEP(plock = 0);
			RING(filled, P, N)
#endif
		:: state == 0 && ROOM && id < STREAM ->
			PUBLISH((id * ITEMS + k) * 4 + 1);
			RING(filled, P, N);
			do
			:: ROOM -> break
			:: !ROOM ->
				ANNOUNCE(freed);
				slept = 1;
				if
				:: ROOM
				:: !ROOM -> SLEEP(freed)
				fi
			od;
			PUBLISH((id * ITEMS + k) * 4 + 2);
			STEP(plock = 0);
			RING(filled, P, N)
		fi;
		PASS_ON(freed, ROOM, 0, P);
		k++
	od;
	PASS_ON(freed, ROOM, 0, P);
	done[id] = 1;
	goto end;
die:	atomic { dead[id] = 1; asleep[id] = 0 }
end:	skip
}

/* The record is read in one step and given back in another. */
#ifdef BUG_FREE_FIRST
#define TAKE(count) STEP(tail++); STEP(v = slot[(tail - 1) % CAP]; assert(v == meant[tail - 1]); count)
#else
#define TAKE(count) STEP(assert(v == meant[tail]); tail++; count)
#endif
#define COUNT delivered[v / 4]++; assert(delivered[v / 4] == 1)

proctype consumer(byte id)
{
	byte seen, x, v, st, record;
	bit slept, got;
begin:
	ENTER(clock, filled, P, N);
look:
	STEP(st = state);
	if
	:: EMPTY && st == 2 -> STEP(clock = 0); PASS_ON(filled, !EMPTY, P, N); goto over
	:: EMPTY && st == 1 -> /* the closer may have been killed */
		STEP(clock = 0);
		LOCK(plock);
		STEP(state = 2);
		STEP(plock = 0);
		goto begin
	:: EMPTY && st == 0 ->
		STEP(clock = 0);
again:
		ANNOUNCE(filled);
		slept = 1;
#ifndef BUG_NO_RECHECK_C
		if
		:: !EMPTY || state != 0 -> goto begin
		:: EMPTY && state == 0
		fi;
#endif
		SLEEP(filled);
		if
		:: !EMPTY || state != 0 -> goto begin
		:: EMPTY && state == 0 -> goto again
		fi
	:: !EMPTY -> STEP(v = slot[tail % CAP])
	fi;
	if
	:: v % 4 == 2 -> TAKE(skip); goto look /* a piece of a record that was lost with its consumer */
	:: v % 4 == 0 -> TAKE(COUNT)
	:: v % 4 == 1 ->
		record = v / 4;
		TAKE(skip);
		RING(freed, 0, P);
piece:
		if
		:: !EMPTY ->
			STEP(v = slot[tail % CAP]);
			if
			:: v % 4 == 2 && v / 4 == record -> TAKE(COUNT)
			:: else -> goto look /* void: its producer died */
			fi
		:: EMPTY ->
			ANNOUNCE(filled);
			slept = 1;
			if
			:: !EMPTY -> goto piece
			:: EMPTY
			fi;
			TRY(plock);
			if
			:: got -> STEP(plock = 0);
				if
				:: !EMPTY -> goto piece
				:: EMPTY -> goto look
				fi
			:: !got
			fi;
			SLEEP(filled);
			goto piece
		fi
	fi;
	STEP(clock = 0);
	RING(freed, 0, P);
	PASS_ON(filled, !EMPTY, P, N);
#ifdef HANG
	if
	:: busy[id] = 1; goto end
	:: goto begin
	fi;
#else
	goto begin;
#endif
over:	done[id] = 1;
	goto end;
die:	atomic { dead[id] = 1; asleep[id] = 0 }
end:	skip
}

#define OVER(i) (done[i] || dead[i])

inline wake_all()
{
	atomic {
		filled = (filled + 1 + filled % 2) % 16;
		freed = (freed + 1 + freed % 2) % 16;
		v = 0;
		do
		:: v < N -> asleep[v] = 0; v++
		:: v == N -> break
		od
	}
}

proctype closer(byte id)
{
	byte v;
#if P == 2
	(OVER(0) && (EARLY || OVER(1) && EMPTY)); /* before, it would wake those whom nobody else wakes */
#else
	(OVER(0) && EMPTY);
#endif
#ifdef BUG_CLOSE_WITHOUT_LOCK
	STEP(state = 2);
#else
	STEP(state = 1);
	wake_all();
	LOCK(plock);
	STEP(state = 2);
	STEP(plock = 0);
#endif
	if
	:: DIE
	:: wake_all()
	fi;
	goto end;
die:	dead[id] = 1;
end:	skip
}

proctype monitor()
{
	byte n, v;
	do
	:: n < LOOKS -> timeout; n++;
		atomic {
			v = 0;
			do
			:: v < N -> asleep[v] = 0; v++
			:: v == N -> break
			od
		}
	:: n == LOOKS -> break
	od;
	timeout;
	v = 0;
	do
	:: v < P -> assert(OVER(v) || (state == 0 && !ROOM)); v++
	:: v >= P && v < N -> assert(OVER(v) || busy[v] || (state == 0 && EMPTY)); assert(dead[v] || busy[v] || EMPTY); v++
	:: v == N -> break
	od;
#ifdef HANG
	goto end;
#endif
	assert(state == 2 || DEATHS > 0);
	v = 0;
	do
	:: v < P * ITEMS -> assert(delivered[v] == 1 || DEATHS > 0 || EARLY); v++
	:: v == P * ITEMS -> break
	od;
end:	skip
}

init
{
	byte i;
	atomic {
		do
		:: i < CAP -> slot[i] = 255; i++
		:: i == CAP -> i = 0; break
		od;
		do
		:: i < P -> run producer(i); i++
		:: i >= P && i < N -> run consumer(i); i++
		:: i == N -> break
		od;
		run closer(N); run monitor()
	}
}
