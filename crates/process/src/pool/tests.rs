//! The pool on a factory that makes, fails and kills on command, in paused time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{advance, sleep};
use tokio_util::sync::CancellationToken;

use super::*;

const START: Duration = Duration::from_secs(2);

#[derive(Default)]
struct Log {
    made: AtomicUsize,
    retired: AtomicUsize,
    failing: Mutex<Option<&'static str>>,
    newest: Mutex<CancellationToken>,
}

impl Log {
    fn kill_newest(&self) {
        self.newest.lock().unwrap().cancel();
    }
}

struct Slow(Arc<Log>);

#[derive(Debug)]
struct Item {
    number: usize,
    dead: CancellationToken,
}

impl Factory for Slow {
    type Item = Item;
    type Error = &'static str;

    fn make(&self) -> BoxFuture<'_, Result<Item, &'static str>> {
        Box::pin(async {
            let number = self.0.made.fetch_add(1, Ordering::Relaxed) + 1;
            sleep(START).await;
            let failing = *self.0.failing.lock().unwrap();
            match failing {
                Some("panic") => panic!("as told"),
                Some(error) => Err(error),
                None => {
                    let dead = CancellationToken::new();
                    *self.0.newest.lock().unwrap() = dead.clone();
                    Ok(Item { number, dead })
                }
            }
        })
    }

    fn is_alive(&self, item: &Item) -> bool {
        !item.dead.is_cancelled()
    }

    fn closed(&self, item: &Item) -> BoxFuture<'static, ()> {
        Box::pin(item.dead.clone().cancelled_owned())
    }

    fn retire(&self, _item: Item) -> BoxFuture<'_, ()> {
        Box::pin(async {
            sleep(START).await;
            self.0.retired.fetch_add(1, Ordering::Relaxed);
        })
    }
}

fn pool(config: PoolConfig) -> (Pool<Slow>, Arc<Log>) {
    let log = Arc::new(Log::default());
    (Pool::new(Slow(Arc::clone(&log)), config), log)
}

fn fail_with(log: &Log, error: Option<&'static str>) {
    *log.failing.lock().unwrap() = error;
}

#[tokio::test(start_paused = true)]
async fn a_spare_is_taken_at_once_and_replaced_in_the_background() {
    let (pool, log) = pool(PoolConfig::default());
    pool.until(|status| status.spares == 1).await.unwrap();
    let before = Instant::now();
    assert_eq!(pool.take().await.unwrap().number, 1);
    assert_eq!(before.elapsed(), Duration::ZERO, "no cold start");
    pool.until(|status| status.making == 1).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO, "the replacement is under way");
    pool.until(|status| status.spares == 1).await.unwrap();
    assert_eq!(log.made.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_spare_the_one_being_made_is_given() {
    let (pool, log) = pool(PoolConfig::default());
    let before = Instant::now();
    assert_eq!(pool.take().await.unwrap().number, 1);
    assert_eq!(before.elapsed(), START, "it joined the making instead of starting over");
    assert!(log.made.load(Ordering::Relaxed) <= 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_spare_is_replaced_without_anyone_asking() {
    let (pool, log) = pool(PoolConfig::default());
    pool.until(|status| status.spares == 1).await.unwrap();
    log.kill_newest();
    pool.until(|status| status.spares == 0).await.unwrap();
    pool.until(|status| status.spares == 1).await.unwrap();
    assert_eq!(pool.take().await.unwrap().number, 2);
}

#[tokio::test(start_paused = true)]
async fn a_spare_that_just_died_is_never_handed_out() {
    let (pool, log) = pool(PoolConfig::default());
    pool.until(|status| status.spares == 1).await.unwrap();
    // No await in between: the pool has not noticed yet.
    log.kill_newest();
    assert_eq!(pool.take().await.unwrap().number, 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_is_no_longer_the_pools_concern() {
    let (pool, log) = pool(PoolConfig::default());
    let taken = pool.take().await.unwrap();
    pool.until(|status| status.spares == 1).await.unwrap();
    taken.dead.cancel();
    sleep(START).await;
    assert_eq!(pool.status(), PoolStatus { spares: 1, ..PoolStatus::default() });
    assert_eq!(log.made.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn r2_repeated_failures_open_the_circuit_and_a_probe_closes_it() {
    let (pool, log) = pool(PoolConfig::default());
    fail_with(&log, Some("no login"));
    let first = pool.take().await.unwrap_err();
    assert!(matches!(&first, PoolError::Failed(Failure::Make(error)) if **error == "no login"), "{first}");

    pool.until(|status| status.retry_after.is_some()).await.unwrap();
    let before = Instant::now();
    let refused = pool.take().await.unwrap_err();
    assert_eq!(before.elapsed(), Duration::ZERO, "refused at once");
    assert!(refused.to_string().ends_with("the last one: no login"), "{refused}");
    let PoolError::CircuitOpen { retry_after, .. } = refused else { panic!("{refused}") };
    assert!(retry_after <= RestartPolicy::default().open_for);

    fail_with(&log, None);
    pool.until(|status| status.spares == 1 && status.retry_after.is_none()).await.unwrap();
    pool.take().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_keeps_failing_makes_few_attempts() {
    let (pool, log) = pool(PoolConfig::default());
    fail_with(&log, Some("broken"));
    advance(Duration::from_secs(1)).await;
    sleep(Duration::from_mins(10)).await;
    let attempts = log.made.load(Ordering::Relaxed);
    assert!((6..40).contains(&attempts), "{attempts} attempts in ten minutes");
    drop(pool);
}

#[tokio::test(start_paused = true)]
async fn crashes_of_taken_items_count_too() {
    let (pool, _log) = pool(PoolConfig::default());
    for _ in 0..RestartPolicy::default().failures {
        pool.report_crash("exit code 1").await;
    }
    pool.until(|status| status.retry_after.is_some()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_making_is_a_failure_and_not_the_end_of_the_pool() {
    let (pool, log) = pool(PoolConfig::default());
    fail_with(&log, Some("panic"));
    assert!(matches!(pool.take().await, Err(PoolError::Failed(Failure::Panicked))));
    fail_with(&log, None);
    pool.take().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_is_bounded_in_time_and_number() {
    let config = PoolConfig { max_waiting: 2, deadline: START / 2, ..PoolConfig::default() };
    let (pool, _log) = pool(config);
    let (first, second, third) = tokio::join!(pool.take(), pool.take(), pool.take());
    assert!(matches!(first, Err(PoolError::Deadline(_))));
    assert!(matches!(second, Err(PoolError::Deadline(_))));
    assert!(matches!(third, Err(PoolError::Full { waiting: 2 })));
    pool.until(|status| status.spares >= 1).await.unwrap();
    pool.take().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_made_for_callers_that_left_is_retired() {
    let (pool, log) = pool(PoolConfig { deadline: START / 2, ..PoolConfig::default() });
    let (first, second) = tokio::join!(pool.take(), pool.take());
    assert!(first.is_err() && second.is_err());
    sleep(2 * START).await;
    assert_eq!(pool.status(), PoolStatus { spares: 1, ..PoolStatus::default() });
    assert_eq!(log.made.load(Ordering::Relaxed), 2);
    assert_eq!(log.retired.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_the_queue_does_not_cost_an_item() {
    let (pool, log) = pool(PoolConfig::default());
    let impatient = tokio::time::timeout(START / 2, pool.take()).await;
    assert!(impatient.is_err());
    pool.until(|status| status.spares >= 1 && status.making == 0).await.unwrap();
    let before = Instant::now();
    pool.take().await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert!(log.made.load(Ordering::Relaxed) <= 3);
}

#[tokio::test(start_paused = true)]
async fn shutdown_retires_every_spare_waits_for_it_and_refuses_the_rest() {
    let (pool, log) = pool(PoolConfig { spares: 3, ..PoolConfig::default() });
    pool.until(|status| status.spares == 3).await.unwrap();
    pool.shut_down().await;
    assert_eq!(log.retired.load(Ordering::Relaxed), 3);
    assert!(matches!(pool.take().await, Err(PoolError::ShutDown)));
    pool.shut_down().await;
}
