//! Several futures at once, begun in order.

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

enum Slot<F: Future> {
    Running(Pin<Box<F>>),
    Done(Option<F::Output>),
}

/// Runs all of them to their ends. Each is first polled in its turn, so that what they hand to a queue stands there in
/// this order.
pub(super) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output>
where
    F::Output: Unpin,
{
    let mut slots: Vec<Slot<F>> = futures.map(|future| Slot::Running(Box::pin(future))).collect();
    std::future::poll_fn(move |context| {
        let mut is_done = true;
        for slot in &mut slots {
            if let Slot::Running(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *slot = Slot::Done(Some(output)),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if !is_done {
            return Poll::Pending;
        }
        let outputs = slots.iter_mut().filter_map(|slot| match slot {
            Slot::Done(output) => output.take(),
            Slot::Running(_) => None,
        });
        Poll::Ready(outputs.collect())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn they_begin_in_order_and_their_outputs_stand_in_order() {
        let begun = RefCell::new(Vec::new());
        let begun = &begun;
        let outputs = all((0..4_u64).map(|number| async move {
            begun.borrow_mut().push(number);
            tokio::time::sleep(std::time::Duration::from_millis(4 - number)).await;
            number * 10
        }))
        .await;
        assert_eq!(*begun.borrow(), [0, 1, 2, 3]);
        assert_eq!(outputs, [0, 10, 20, 30]);
        assert!(all(std::iter::empty::<std::future::Ready<()>>()).await.is_empty());
    }
}
