#include "kernels/host/thread_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
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

constexpr int kMaxThreads = 1024;

}  // namespace

int usable_threads() {
    const char* text = run_variable(RunVariable::num_threads);
    if (text == nullptr || *text == '\0') return std::min(usable_cpus(), kMaxThreads);
    int count = 0;
    const char* const end = text + std::strlen(text);
    const auto [behind, error] = std::from_chars(text, end, count);
    if (error != std::errc() || behind != end || count < 1 || count > kMaxThreads) {
        throw InvalidArgument("TCGEMM_NUM_THREADS=\"" + std::string(text) +
                              "\": a whole number from 1 to " + std::to_string(kMaxThreads) +
                              " is required; unset it to use every CPU of the process");
    }
    return count;
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
        job.ended.wait(lock, [&job] { return job.running == 0; });
    }
    if (own_error) std::rethrow_exception(own_error);
    if (job.error) std::rethrow_exception(job.error);
}

void ThreadPool::serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
        work_.wait(lock, [this] { return !jobs_.empty(); });
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
