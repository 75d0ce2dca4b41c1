// SPDX-License-Identifier: Apache-2.0
//! `cairn::dhat` under the name that programs written for the crate dhat have in their sources.
#![doc(html_no_source)]
pub use cairn::dhat::*;
