/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell of a map (docs/design/001-claims-and-rings.md, "Sleeping: The caller of a map"): drover/shm/sleepers.h, MapJob::wait,
 * ChunkCall::publish, WorkerLoop::serve): two workers with ITEMS records each, the caller, the service thread. A worker may be killed at any
 * step. It looks at the threshold without a fence after each item, with one after each burst of BURST items (a chunk, or up to 8 claims), and
 * rings whatever the threshold when it has no more to do.
 *
 * Stores are delayed as on x86 (see sleep.pml): the workers' store of head and the caller's store of threshold go through store buffers
 * of one entry; fences and locked instructions wait until the buffer is empty.
 *
 * Checked when nothing moves any more (monitor): every published record is consumed, every death has been seen by the caller.
 *
 * HANG: an item may never end.
 * TIMEOUT: the caller's sleep ends after a while: LOOKS times at any moment, and once more when nothing else moves.
 */
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef BURST
#define BURST 2
#endif
#ifndef TIMEOUT
#define TIMEOUT 0
#endif
#ifndef LOOKS
#define LOOKS 1
#endif
#ifndef THRESHOLD
#define THRESHOLD 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif

byte head[2], rd[2];         /* in memory */
byte wbuf[2]; bit wfull[2];  /* store buffers of the workers */
byte sequence, threshold;    /* the doorbell */
byte cbuf; bit cfull;        /* store buffer of the caller */
bit asleep, zombie[2];
byte deaths, seen, kills;
byte looks = TIMEOUT * LOOKS;  /* time-outs to come */

#define DIE atomic { kills < DEATHS -> kills++; goto die }

/* "exchanges it for zero; who gets it adds one to sequence and wakes" */
#define RING(x) \
	if \
	:: DIE \
	:: atomic { !wfull[s] -> x = threshold; threshold = 0 } \
	fi; \
	if \
	:: x == 0 \
	:: x != 0 -> \
		if \
		:: DIE \
		:: atomic { sequence++; x = 0 } \
		fi; \
		if \
		:: DIE \
		:: asleep = 0 \
		fi \
	fi

proctype worker(byte s)
{
	byte h, x;
	do
	:: h < ITEMS ->
#ifdef HANG
		if
		:: skip
		:: goto stuck        /* the item never ends (a kill of this worker then is another run) */
		fi;
#endif
		if
		:: DIE
		:: atomic { !wfull[s] -> h++; wbuf[s] = h; wfull[s] = 1 } /* "after it published: ..." */
		fi;
		if                   /* hint: "within a chunk a worker looks without the fence" */
		:: DIE
		:: threshold == 0 || h - rd[s] < threshold
		:: threshold != 0 && h - rd[s] >= threshold -> RING(x)
		fi;
		if
		:: h % BURST == 0 || h == ITEMS -> /* "after the last item: ..." */
#ifndef NO_FENCE_W
			if
			:: DIE
			:: !wfull[s]     /* "... fence, ..." */
			fi;
#endif
			if
			:: DIE
			:: threshold == 0 || h - rd[s] < threshold
			:: threshold != 0 && h - rd[s] >= threshold -> /* "... and when the threshold is not zero and reached ..." */
				RING(x)
			fi
		:: else
		fi
	:: h == ITEMS ->         /* "... (or it runs out of work)" */
#ifdef BUG_OUT_SILENT
		break
#else
		if
		:: DIE
#ifndef NO_FENCE_W
		:: atomic { !wfull[s] && (threshold == 0 || h == rd[s]) -> break }
		:: atomic { !wfull[s] && threshold != 0 && h != rd[s] -> skip };
#else
		:: threshold == 0 || h == rd[s] -> break
		:: threshold != 0 && h != rd[s];
#endif
			RING(x);
			break
		fi
#endif
	od;
stuck:
	goto end;
die:
	atomic { x = 0; h = 0; zombie[s] = 1 };
end:
	skip
}

/* store buffers empty at any time, also those of the dead */
proctype memory()
{
	do
	:: atomic { wfull[0] -> head[0] = wbuf[0]; wbuf[0] = 0; wfull[0] = 0 }
	:: atomic { wfull[1] -> head[1] = wbuf[1]; wbuf[1] = 0; wfull[1] = 0 }
	:: atomic { cfull -> threshold = cbuf; cbuf = 0; cfull = 0 }
	od
}

proctype caller()
{
	byte v;
	do
	:: rd[0] < head[0] -> rd[0] = rd[0] + 1
	:: rd[1] < head[1] -> rd[1] = rd[1] + 1
	:: seen < deaths -> seen = deaths
	:: rd[0] == head[0] && rd[1] == head[1] && seen == deaths ->
		v = sequence;
		atomic { !cfull -> cbuf = THRESHOLD; cfull = 1 }; /* "store the threshold, ..." */
#ifndef NO_FENCE_C
		!cfull;              /* "... fence, ..." */
#endif
		if                   /* "... look at all rings again, ...", one after the other, and at the deaths */
		:: rd[0] < head[0] -> goto awake
		:: rd[0] == head[0]
		fi;
		if
		:: rd[1] < head[1] -> goto awake
		:: rd[1] == head[1]
		fi;
		if
		:: seen < deaths -> goto awake
		:: seen == deaths
		fi;
wait:
		atomic {             /* "... wait on sequence": compares and blocks in one step */
			if
			:: sequence == v -> asleep = 1
			:: else
			fi
		};
		if
		:: !asleep
		:: atomic { asleep && looks > 0 -> looks--; asleep = 0 };
#if THRESHOLD == 1
			if
			:: rd[0] == head[0] && rd[1] == head[1] && seen == deaths -> goto wait
			:: rd[0] < head[0] || rd[1] < head[1] || seen < deaths
			fi
#endif
		fi;
awake:
		v = 0;
		atomic { !cfull -> cbuf = 0; cfull = 1 } /* cancel */
	od
}

proctype service()
{
	byte s;
	do
	:: atomic { zombie[0] || zombie[1] -> s = (zombie[0] -> 0 : 1) };
		!wfull[s];           /* reaped: what it had stored is seen */
		atomic { zombie[s] = 0; s = 0; deaths++ }; /* "raises the job's deaths counter and rings the doorbell" */
#ifndef BUG_DEATH_SILENT
#ifdef BUG_DEATH_EXCHANGE
		if                   /* rings only when the threshold is set, as the workers do */
		:: threshold != 0 -> threshold = 0; sequence++; asleep = 0
		:: threshold == 0
		fi
#else
		sequence++;          /* whatever the threshold is */
		asleep = 0
#endif
#endif
	od
}

proctype monitor()
{
	timeout;
#if TIMEOUT
	looks = 1;               /* a time is over, sooner or later */
	timeout;
#endif
	assert(!wfull[0] && !wfull[1] && !cfull && !zombie[0] && !zombie[1]);
	assert(rd[0] == head[0] && rd[1] == head[1] && seen == deaths);
}

init
{
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		deaths = 0;
		run worker(0); run worker(1); run memory(); run caller(); run service(); run monitor()
	}
}
