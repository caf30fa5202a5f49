//! The same against a real API server: memory at rest, and how long a write takes to a handler.

use anyhow::Result;

use super::build::Programs;
use super::figures::Figures;

pub(crate) fn measure(_programs: &Programs, _only: &[String], _figures: &mut Figures) -> Result<()> {
    Ok(())
}
