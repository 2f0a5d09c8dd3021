//! Starts the pipeline again when it dies.

use super::error::OrdersError;
use super::pipeline::PipelineSpec;
use super::process::{Departure, PipelineProcess, Program};
use super::state_dir::StateDir;

/// How often the pipeline died without anything arriving in between.
///
/// Starting it again is bounded by the absence of progress and not by a number of deaths: a process
/// that is killed now and then, and works in between, is started again for ever.
#[derive(Debug, Default)]
struct Deaths {
    in_a_row: u32,
    /// What had arrived at the last one.
    arrived: u64,
}

impl Deaths {
    /// In a row, after which starting it once more is pointless.
    const POINTLESS: u32 = 3;

    /// Notes a death when `arrived` orders and calls had arrived in all.
    fn note(&mut self, arrived: u64) -> Result<(), OrdersError> {
        self.in_a_row = if arrived > self.arrived {
            1
        } else {
            self.in_a_row + 1
        };
        self.arrived = arrived;
        if self.in_a_row < Self::POINTLESS {
            Ok(())
        } else {
            Err(OrdersError::CrashLoop {
                deaths: self.in_a_row,
            })
        }
    }
}

/// The pipeline's process and those before it.
#[derive(Debug)]
pub(crate) struct Supervisor {
    program: Program,
    spec: PipelineSpec,
    process: PipelineProcess,
    lose_state: bool,
    restarts: u64,
    deaths: Deaths,
    peak_mib: Option<f64>,
}

impl Supervisor {
    /// Starts the pipeline. With `lose_state` its checkpoints are deleted when it dies.
    pub(crate) async fn start(
        program: &Program,
        spec: PipelineSpec,
        lose_state: bool,
    ) -> Result<Self, OrdersError> {
        let process = PipelineProcess::start(program, &spec).await?;
        let program = program.clone();
        Ok(Self {
            program,
            spec,
            process,
            lose_state,
            restarts: 0,
            deaths: Deaths::default(),
            peak_mib: None,
        })
    }

    /// Waits until the pipeline has ended, which it does not do unasked unless something is wrong.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before the process has ended loses nothing.
    pub(crate) async fn departed(&mut self) -> Result<Departure, OrdersError> {
        self.process.departed().await
    }

    /// Starts the pipeline again after it died; `arrived` is how much has arrived anywhere so far.
    pub(crate) async fn restart(
        &mut self,
        departure: Departure,
        arrived: u64,
        state: &mut StateDir,
    ) -> Result<(), OrdersError> {
        match departure {
            Departure::Died(_) => {}
            Departure::Ended => return Err(OrdersError::Unasked),
            Departure::Failed(text) => return Err(OrdersError::Pipeline(text)),
        }
        self.deaths.note(arrived)?;
        if self.lose_state {
            state.lose().await?;
        }
        // A crash on purpose happens once.
        self.spec.crash_after = None;
        self.keep_peak();
        self.process = PipelineProcess::start(&self.program, &self.spec).await?;
        self.restarts += 1;
        Ok(())
    }

    /// Tells the pipeline to end in order.
    pub(crate) async fn stop(&mut self) -> Result<(), OrdersError> {
        let departure = self.process.stop().await?;
        self.keep_peak();
        match departure {
            Departure::Ended => Ok(()),
            Departure::Failed(text) => Err(OrdersError::Pipeline(text)),
            Departure::Died(_) => Err(OrdersError::DiedAtTheEnd),
        }
    }

    /// Ends the pipeline without waiting for it, if it still runs.
    pub(crate) async fn kill(&mut self) {
        self.process.kill().await;
    }

    pub(crate) fn sample_memory(&mut self) {
        self.process.sample_memory();
    }

    fn keep_peak(&mut self) {
        let peaks = [self.peak_mib, self.process.peak_mib()];
        self.peak_mib = peaks.into_iter().flatten().reduce(f64::max);
    }

    pub(crate) const fn restarts(&self) -> u64 {
        self.restarts
    }

    /// The most memory that any of the processes held, in MiB, once they have ended.
    pub(crate) const fn peak_mib(&self) -> Option<f64> {
        self.peak_mib
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_that_works_between_its_deaths_is_started_again_for_ever() {
        let mut deaths = Deaths::default();
        for arrived in 1..100 {
            deaths.note(arrived).unwrap();
        }
    }

    #[test]
    fn a_pipeline_that_dies_three_times_over_nothing_is_given_up() {
        let mut deaths = Deaths::default();
        deaths.note(7).unwrap();
        deaths.note(7).unwrap();
        assert!(matches!(
            deaths.note(7),
            Err(OrdersError::CrashLoop { deaths: 3 })
        ));
    }
}
