#include "kernels/host/thread_pool.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "core/cpu_count.hpp"
#include "core/environment.hpp"
#include "tcgemm/error.hpp"

namespace tcgemm::host {
namespace {

// What a sleep and waking up take at most, as a rule.
constexpr std::chrono::microseconds kLookOn{200};

// Waits, awake, until there is something, but no longer than kLookOn.
template <class Condition>
void look_on(const Condition& there_is_something) {
    const auto until = std::chrono::steady_clock::now() + kLookOn;
    do {
        for (int i = 0; i < 64; ++i) {
            if (there_is_something()) return;
#if defined(__SSE2__)
            _mm_pause();
#endif
        }
        std::this_thread::yield();  // to whom it waits for, where that has the same CPU
    } while (std::chrono::steady_clock::now() < until);
}

// Threads that are started meanwhile take no signals but those of their own faults: others are for
// the process's own threads.
class BlockedSignals {
   public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPROF}) {
            sigdelset(&all, fault);  // and a profiler's
        }
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    BlockedSignals(const BlockedSignals&) = delete;
    BlockedSignals& operator=(const BlockedSignals&) = delete;

   private:
    sigset_t before_;
};

}  // namespace

int usable_threads(int most) {
    const char* text = run_variable(RunVariable::num_threads);
    if (text == nullptr || *text == '\0') return most > 1 ? std::min(usable_cpus(), most) : most;
    int count = 0;
    const char* const end = text + std::strlen(text);
    const auto [behind, error] = std::from_chars(text, end, count);
    if (error != std::errc() || behind != end || count < 1 || count > kMaxThreads) {
        throw InvalidArgument("TCGEMM_NUM_THREADS is \"" + std::string(text) +
                              "\"; it must be a whole number from 1 to " +
                              std::to_string(kMaxThreads) +
                              ": unset it to use every CPU of the process");
    }
    return std::min(count, most);
}

ThreadPool& ThreadPool::instance() {
    // No lock: one that another thread held during fork() would stay locked in the child.
    static std::atomic<ThreadPool*> current{nullptr};
    ThreadPool* pool = current.load(std::memory_order_acquire);
    while (pool == nullptr || pool->process_ != getpid()) {
        std::unique_ptr<ThreadPool> fresh(new ThreadPool);
        if (current.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel)) {
            pool = fresh.release();
        }
    }
    return *pool;
}

ThreadPool::ThreadPool() : process_(getpid()) {}

void ThreadPool::start_threads(int count) {
    jobs_.reserve(jobs_.size() + 1);
    if (threads_ >= count) return;
    const BlockedSignals no_signals;
    while (threads_ < count) {
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::exception&) {
            return;  // no thread or no memory left for one: the call does with fewer
        }
        ++threads_;
    }
}

void ThreadPool::run(int workers, const std::function<void(int)>& body) {
    if (workers <= 1) return body(0);
    Job job{&body, 1, workers, 0, nullptr, {}};
    {
        const std::lock_guard lock(mutex_);
        start_threads(workers - 1);
        jobs_.push_back(&job);
        ++posted_;
    }
    work_.notify_all();

    std::exception_ptr own_error;
    try {
        body(0);
    } catch (...) {
        own_error = std::current_exception();
    }
    {
        std::unique_lock lock(mutex_);
        jobs_.erase(std::remove(jobs_.begin(), jobs_.end(), &job), jobs_.end());
        const auto is_over = [&job] { return job.running == 0; };
        if (!is_over()) {
            lock.unlock();
            look_on(is_over);
            lock.lock();  // the last one has given it back
            job.ended.wait(lock, is_over);
        }
    }
    if (own_error) std::rethrow_exception(own_error);
    if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        // Whoever wakes too late for a job looks on for the next one.
        while (jobs_.empty()) {
            const unsigned posted = posted_;
            lock.unlock();
            look_on([&] { return posted_ != posted; });
            lock.lock();
            if (posted_ == posted) work_.wait(lock);
        }
        Job& job = *jobs_.front();
        const int worker = job.next_worker++;
        if (job.next_worker == job.end_worker) jobs_.erase(jobs_.begin());
        ++job.running;
        lock.unlock();

        std::exception_ptr error;
        try {
            (*job.body)(worker);
        } catch (...) {
            error = std::current_exception();
        }

        lock.lock();
        if (error && !job.error) job.error = error;
        // Under the lock: when it is given back, the caller may destroy the job.
        if (--job.running == 0) job.ended.notify_one();
    }
}

}  // namespace tcgemm::host
