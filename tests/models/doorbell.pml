/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doorbell of a map (docs/design/001-claims-and-rings.md, "Sleeping: The caller of a map"): two workers with ITEMS records each and rings of
 * R records, the caller, the service thread. A worker may be killed at any step.
 *
 * Stores are delayed as on x86 (see sleep.pml): the workers' store of head and the caller's store of threshold go through store buffers
 * of one entry; fences and locked instructions wait until the buffer is empty.
 *
 * Checked when nothing moves any more (monitor): every published record is consumed, every death has been seen by the caller.
 *
 * HANG: an item may never end.
 */
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef R
#define R 1
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
bit asleep, zombie[2], out[2];
byte deaths, seen, kills;

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
		:: h - rd[s] < R
		:: h - rd[s] >= R -> /* no room: not in the note, but a worker that waits for room must ring, whatever the threshold */
#ifndef BUG_FULL_SILENT
			RING(x);
#endif
			if
			:: DIE
			:: h - rd[s] < R
			fi
		fi;
		if
		:: DIE
		:: atomic { !wfull[s] -> h++; wbuf[s] = h; wfull[s] = 1 } /* "after it published: ..." */
		fi;
#ifndef NO_FENCE_W
		if
		:: DIE
		:: !wfull[s]         /* "... fence, ..." */
		fi;
#endif
		if
		:: DIE
		:: threshold == 0
		:: threshold != 0 && h - rd[s] < threshold
		:: threshold != 0 && h - rd[s] >= threshold -> /* "... and when the threshold is not zero and reached ..." */
			RING(x)
		fi
	:: h == ITEMS ->         /* "... (or it runs out of work)" */
#ifdef BUG_OUT_SILENT
		break
#else
		if
		:: DIE
		:: threshold == 0 -> break
		:: threshold != 0 -> RING(x); break
		fi
#endif
	od;
stuck:
	out[s] = 1;
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
		atomic {             /* "... wait on sequence": compares and blocks in one step */
			if
			:: sequence == v -> asleep = 1
			:: else
			fi
		};
		!asleep;
awake:
		v = 0
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
	assert(!wfull[0] && !wfull[1] && !cfull && !zombie[0] && !zombie[1]);
	assert(rd[0] == head[0] && rd[1] == head[1] && seen == deaths);
	assert(out[0] + out[1] + deaths == 2) /* nobody waits for room for ever */
}

init
{
	atomic {
		select(kills : 0 .. DEATHS); /* how many of the deaths are spent already */
		deaths = 0;
		run worker(0); run worker(1); run memory(); run caller(); run service(); run monitor()
	}
}
