// SPDX-License-Identifier: Apache-2.0
#include "fault/waits.h"

#include <unistd.h>

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "drover/drover.h"

namespace drover_test {
namespace {

using namespace drover;

[[noreturn]] void keep() {
  for (;;) pause();
}

void hold_mutex(Mutex mutex, Event held) {
  mutex.lock();
  held.set();
  keep();
}

void read_and_hold(SharedMutex mutex, Event held) {
  mutex.lock_shared();
  held.set();
  keep();
}

using Wide = std::array<double, 4>;

void hold_value(SharedValue<Wide> value, Event held) {
  value.update([&held](const Wide& wide) -> Wide {
    held.set();
    keep();
    return wide;
  });
}

/// The process that keeps what is waited for.
template <auto function, class Primitive>
Process held_by_another(Primitive& primitive) {
  Event held;
  Process holder = spawn<function>(primitive, held);
  held.wait();
  return holder;
}

using Say = std::function<void()>;

const std::map<std::string, void (*)(const Say&)> kWaits = {
    {"mutex",
     [](const Say& say) {
       Mutex mutex;
       const Process holder = held_by_another<hold_mutex>(mutex);
       say();
       const std::scoped_lock lock(mutex);
     }},
    {"writer",
     [](const Say& say) {
       SharedMutex mutex;
       const Process holder = held_by_another<read_and_hold>(mutex);
       say();
       const std::unique_lock lock(mutex);
     }},
    {"value",
     [](const Say& say) {
       SharedValue<Wide> value;
       const Process holder = held_by_another<hold_value>(value);
       say();
       value.store({});
     }},
    {"semaphore",
     [](const Say& say) {
       say();
       Semaphore(0).acquire();
     }},
    {"event",
     [](const Say& say) {
       say();
       Event().wait();
     }},
    {"condition",
     [](const Say& say) {
       Mutex mutex;
       std::unique_lock lock(mutex);
       say();
       Condition().wait(lock, [] { return false; });
     }},
    {"barrier",
     [](const Say& say) {
       say();
       Barrier(2).arrive_and_wait();
     }},
    {"pop",
     [](const Say& say) {
       say();
       static_cast<void>(Queue<int>::create(2).pop());
     }},
    {"push",
     [](const Say& say) {
       auto queue = Queue<int>::create(1);
       queue.push(1);
       say();
       queue.push(2);
     }},
    {"recv",
     [](const Say& say) {
       auto [here, there] = Pipe<int>::create();
       say();
       static_cast<void>(here.recv());
     }},
};

}  // namespace

void wait_at(const std::string& what) {
  Pool pool({.workers = 1});  // Drover's handlers are there while something of it runs
  kWaits.at(what)([&] {
    const std::string text = "waits at " + what + "\n";
    [[maybe_unused]] const ssize_t n = write(1, text.data(), text.size());
  });
}

}  // namespace drover_test
