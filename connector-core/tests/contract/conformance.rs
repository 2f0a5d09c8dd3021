//! The reference connectors keep every clause.

mod source {
    use crate::reference::source_harness::FakeSourceHarness;

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        source: FakeSourceHarness::new(None)
    }
}

mod flush_sink {
    use crate::reference::{sink::Mode, sink_harness::FakeSinkHarness};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        flush_sink: FakeSinkHarness::new(Mode::Flush, None)
    }
}

mod staged_sink {
    use crate::reference::{sink::Mode, sink_harness::FakeSinkHarness};

    connector_core::conformance_tests! {
        #[tokio::test(start_paused = true)]
        staged_sink: FakeSinkHarness::new(Mode::Staged, None)
    }
}
