//! From a subscription to task queues.

use examples::{shard_queues, tasks_once};

use super::of;

#[tokio::test]
async fn each_order_has_one_task_though_answers_are_lost_and_the_job_is_killed_between() {
    let figures = tasks_once::run().await.unwrap();
    let names = [
        "tasks",
        "orders with a task",
        "orders with more than one",
        "not acknowledged",
    ];
    assert_eq!(of(&figures, names), [300, 300, 0, 0], "{figures}");
    let [refused] = of(&figures, ["asked for once more, and refused"]);
    assert!(refused >= 5, "five answers were lost at least: {figures}");
}

#[tokio::test]
async fn a_customer_has_one_queue_and_an_order_one_task() {
    let figures = shard_queues::run().await.unwrap();
    let names = [
        "tasks",
        "orders with a task",
        "customers",
        "customers in more than one queue",
    ];
    assert_eq!(of(&figures, names), [600, 600, 10, 0], "{figures}");
    assert_eq!(
        of(&figures, ["queues used", "not acknowledged"]),
        [4, 0],
        "{figures}"
    );
}
