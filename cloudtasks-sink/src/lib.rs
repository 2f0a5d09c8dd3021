//! cloudtasks-sink
