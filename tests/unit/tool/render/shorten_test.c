// SPDX-License-Identifier: Apache-2.0
// Names as nm and c++filt print them, of libstdc++, libclang-cpp, LLVM, Rust's std, Phobos and a
// program that was built for it, drawn at random.
#include "tool/render/shorten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "tool/base/text.h"

enum { NAME_BYTES = 4096, COLUMNS = 32 };

// clang-format off
static const struct {
    const char *name, *in_32_columns;
} names[] = {
    {"clang::Sema::ActOnCXXEnterDeclaratorScope",
     "ActOnCXXEnterDeclaratorScope"},
    {"clang::ConstantExpr::getStorageKind",
     "…::ConstantExpr::getStorageKind"},
    {"std::vector<clang::NullabilityKind, std::allocator<clang::NullabilityKind> >::_M_default_append",
     "vector<…>::_M_default_append"},
    {"llvm::SmallVectorTemplateBase<clang::Module::LinkLibrary, false>::grow",
     "SmallVectorTemplateBase<…>::grow"},
    {"std::__cxx11::time_get<char, std::istreambuf_iterator<char, std::char_traits<char> > >::_M_extract_via_format",
     "time_get::_M_extract_via_format"},
    {"llvm::pdb::NativeExeSymbol::getSymbolsFileName[abi:cxx11]",
     "getSymbolsFileName[abi:cxx11]"},
    {"clang::driver::OffloadAction::DeviceDependences::add",
     "clang::…::DeviceDependences::add"},
    {"std::time_get<wchar_t, std::istreambuf_iterator<wchar_t, std::char_traits<wchar_t> > >::_M_extract_via_format",
     "time_get::_M_extract_via_format"},
    {"std::vector<llvm::BasicBlock*, std::allocator<llvm::BasicBlock*> >::_M_range_insert<__gnu_cxx::__normal_iterator<llvm::BasicBlock**, std::vector<llvm::BasicBlock*, std::allocator<llvm::BasicBlock*> > > >",
     "std::vector<…>::_M_range_insert"},
    {"std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >::basic_string<wchar_t const*, void>",
     "…::basic_string<…>::basic_string"},
    {"clang::CodeGen::TargetCodeGenInfo::isNoProtoCallVariadic",
     "Tar…nInfo::isNoProtoCallVariadic"},
    {"clang::ObjCTypeParamType::Profile",
     "…::ObjCTypeParamType::Profile"},
    {"llvm::object::XCOFFObjectFile::parseStringTable",
     "XCOF…jectFile::parseStringTable"},
    {"clang::NoInlineAttr::Create",
     "clang::NoInlineAttr::Create"},
    {"llvm::Attributor::checkForAllCallSites",
     "Attributor::checkForAllCallSites"},
    {"llvm::AANoRecurse::createForPosition",
     "AANoRecurse::createForPosition"},
    {"clang::ASTDeclWriter::VisitNamedDecl",
     "…::ASTDeclWriter::VisitNamedDecl"},
    {"llvm::VLIWResourceModel::reserveResources",
     "VLIW…urceModel::reserveResources"},
    {"llvm::objcarc::IsPotentialRetainableObjPtr",
     "IsPotentialRetainableObjPtr"},
    {"llvm::DwarfDebug::emitDebugLocEntryLocation",
     "emitDebugLocEntryLocation"},
    {"clang::ASTUnit::ConcurrencyState::~ConcurrencyState",
     "Conc…ncyState::~ConcurrencyState"},
    {"std::__cxx11::numpunct<char>::do_falsename",
     "…::numpunct<…>::do_falsename"},
    {"clang::syntax::List::getElementsAsNodesAndDelimiters",
     "getElementsAsNodesAndDelimiters"},
    {"clang::FunctionDecl::setDependentTemplateSpecialization",
     "setDepende…emplateSpecialization"},
    {"std::random_device::_M_init",
     "std::random_device::_M_init"},
    {"std::__timepunct<char>::_M_time_formats",
     "__timepunct<…>::_M_time_formats"},
    {"llvm::DataLayout::DataLayout",
     "llvm::DataLayout::DataLayout"},
    {"llvm::ScheduleDAGInstrs::fixupKills",
     "…::ScheduleDAGInstrs::fixupKills"},
    {"clang::ExternalASTMerger::ForceRecordOrigin",
     "Exte…STMerger::ForceRecordOrigin"},
    {"llvm::SCCPSolver::getArgumentTrackedFunctions",
     "getArgumentTrackedFunctions"},
    {"clang::Sema::EndOpenMPClause",
     "clang::Sema::EndOpenMPClause"},
    {"llvm::SmallVectorTemplateBase<clang::LogDiagnosticPrinter::DiagEntry, false>::moveElementsForGrow",
     "Sma…ateBase::moveElementsForGrow"},
    {"std::__cxx11::moneypunct<wchar_t, true>::neg_format",
     "…::moneypunct<…>::neg_format"},
    {"llvm::sampleprof::CSProfileConverter::getOrCreateContextPath",
     "CS…erter::getOrCreateContextPath"},
    {"std::__cxx11::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >::_M_disjunct",
     "…::basic_string<…>::_M_disjunct"},
    {"llvm::RegionBase<llvm::RegionTraits<llvm::MachineFunction> >::~RegionBase",
     "llvm::RegionBase<…>::~RegionBase"},
    {"clang::GCCAsmStmt::setInputExpr",
     "clang::GCCAsmStmt::setInputExpr"},
    {"clang::SYCLKernelAttr::SYCLKernelAttr",
     "SYCLKernelAttr::SYCLKernelAttr"},
    {"clang::OverrideAttr::Create",
     "clang::OverrideAttr::Create"},
    {"std::__throw_range_error",
     "std::__throw_range_error"},
    {"llvm::ScalarEvolution::getSCEVAtScope",
     "ScalarEvolution::getSCEVAtScope"},
    {"llvm::SmallVectorTemplateBase<clang::ast_matchers::internal::BoundNodesMap, false>::grow",
     "SmallVectorTemplateBase<…>::grow"},
    {"llvm::ExecutionEngine::getPointerToGlobal",
     "Exec…nEngine::getPointerToGlobal"},
    {"llvm::SmallVectorImpl<clang::CXXMethodDecl*>::swap",
     "llvm::SmallVectorImpl<…>::swap"},
    {"std::__cxx11::moneypunct<wchar_t, false>::frac_digits",
     "…::moneypunct<…>::frac_digits"},
    {"llvm::Registry<clang::PluginASTAction>::Tail",
     "llvm::Registry<…>::Tail"},
    {"llvm::checkedAdd<long>",
     "llvm::checkedAdd<long>"},
    {"std::numeric_limits<char16_t>::max_exponent",
     "numeric_limits<…>::max_exponent"},
    {"clang::StrictFPAttr::CreateImplicit",
     "…::StrictFPAttr::CreateImplicit"},
    {"llvm::SuffixTree::insertLeaf",
     "llvm::SuffixTree::insertLeaf"},
    {"llvm::detail::PtrUseVisitorBase::enqueueUsers",
     "PtrUseVisitorBase::enqueueUsers"},
    {"llvm::IntervalMap<llvm::SlotIndex, llvm::LiveInterval*, 8u, llvm::IntervalMapInfo<llvm::SlotIndex> >::const_iterator::pathFillFind",
     "…::const_iterator::pathFillFind"},
    {"std::__cxx11::numpunct<char>::do_grouping",
     "…::numpunct<…>::do_grouping"},
    {"llvm::LLVMContext::getMainRemarkStreamer",
     "LLV…ntext::getMainRemarkStreamer"},
    {"std::operator<< <char, std::char_traits<char> >",
     "std::operator<< <…>"},
    {"std::__cxx11::time_get<char, std::istreambuf_iterator<char, std::char_traits<char> > >::_M_extract_wday_or_month",
     "ti…get::_M_extract_wday_or_month"},
    {"std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >::~basic_string",
     "basic_string<…>::~basic_string"},
    {"llvm::AnalysisManager<llvm::Function>::getResultImpl",
     "AnalysisManager::getResultImpl"},
    {"std::numeric_limits<unsigned long long>::digits",
     "std::numeric_limits<…>::digits"},
    {"llvm::IntegerType::get",
     "llvm::IntegerType::get"},
    {"clang::Sema::DestroyDataSharingAttributesStack",
     "DestroyDat…aringAttributesStack"},
    {"clang::Parser::ParseOpenMPInteropClause",
     "Parser::ParseOpenMPInteropClause"},
    {"std::__basic_file<char>::close",
     "std::__basic_file<char>::close"},
    {"llvm::ConstantRange::isAllNegative",
     "…::ConstantRange::isAllNegative"},
    {"std::numeric_limits<char8_t>::is_iec559",
     "numeric_limits<…>::is_iec559"},
    {"llvm::createRedundantDbgInstEliminationPass",
     "createRedu…bgInstEliminationPass"},
    {"clang::ObjCSubclassingRestrictedAttr::clone",
     "ObjCSubc…ngRestrictedAttr::clone"},
    {"std::basic_streambuf<char, std::char_traits<char> >::sungetc",
     "std::basic_streambuf<…>::sungetc"},
    {"std::_Rb_tree<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, std::shared_ptr<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > >, std::_Select1st<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, std::shared_ptr<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > > >, std::less<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > >, std::allocator<std::pair<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > const, std::shared_ptr<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > > > > >::_M_get_insert_unique_pos",
     "_R…ree::_M_get_insert_unique_pos"},
    {"typeinfo name for std::_Sp_make_shared_tag",
     "typ…for std::_Sp_make_shared_tag"},
    {"typeinfo for std::_Sp_counted_ptr_inplace<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "ty… std::_Sp_counted_ptr_inplace"},
    {"vtable for std::_Sp_counted_ptr_inplace<Connection, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "vt… std::_Sp_counted_ptr_inplace"},
    {"vtable for std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "vt… std::_Sp_counted_ptr_inplace"},
    {"std::__detail::__to_chars_10_impl<unsigned int>(char*, unsigned int, unsigned int)::__digits",
     "__to_chars_10_impl(…)::__digits"},
    {"typeinfo for std::_Sp_counted_ptr_inplace<Connection, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "ty… std::_Sp_counted_ptr_inplace"},
    {"std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release",
     "_Sp_counted_base<…>::_M_release"},
    {"typeinfo for std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>",
     "type…o for std::_Sp_counted_base"},
    {"std::_Sp_counted_ptr_inplace<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>::_M_get_deleter",
     "_Sp_c…tr_inplace::_M_get_deleter"},
    {"typeinfo name for std::_Sp_counted_ptr_inplace<Connection, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "ty… std::_Sp_counted_ptr_inplace"},
    {"typeinfo for std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>",
     "ty… std::_Sp_counted_ptr_inplace"},
    {"std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>::~_Sp_counted_ptr_inplace",
     "_S…ace::~_Sp_counted_ptr_inplace"},
    {"std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>::_M_get_deleter",
     "_Sp_c…tr_inplace::_M_get_deleter"},
    {"<alloc::string::String>::try_reserve",
     "<String>::try_reserve"},
    {"<i16 as core::fmt::Display>::fmt",
     "<i16 as core::fmt::Display>::fmt"},
    {"<dyn core::any::Any + core::marker::Send as core::fmt::Debug>::fmt",
     "<dyn Any + Send as Debug>::fmt"},
    {"core::ptr::drop_in_place::<addr2line::function::LazyFunction<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian>>>",
     "core::ptr::drop_in_place::<…>"},
    {"<alloc::raw_vec::RawVec<alloc::vec::Vec<u8>>>::grow_one",
     "<RawVec<…>>::grow_one"},
    {"<alloc::raw_vec::RawVec<(*mut u8, unsafe extern \"C\" fn(*mut u8)), std::alloc::System>>::grow_one",
     "<RawVec<…>>::grow_one"},
    {"<rustc_demangle::v0::Printer>::print_sep_list::<<rustc_demangle::v0::Printer>::print_const::{closure#5}>",
     "<Printer>::print_sep_list"},
    {"std::sys::backtrace::_print_fmt::{closure#1}::{closure#0}",
     "_print_fmt…osure#1}::{closure#0}"},
    {"core::str::slice_error_fail_rt",
     "core::str::slice_error_fail_rt"},
    {"<core::fmt::Error as core::fmt::Debug>::fmt",
     "<Error as Debug>::fmt"},
    {"<hashbrown::raw::RawIntoIter<T,A> as core::ops::drop::Drop>::drop",
     "<RawIntoIter<T,A> as Drop>::drop"},
    {"<rustc_demangle::v0::Printer>::print_sep_list::<<rustc_demangle::v0::Printer>::print_dyn_trait>",
     "<Printer>::print_sep_list"},
    {"<&T as core::convert::AsRef<U>>::as_ref",
     "<&T as AsRef<U>>::as_ref"},
    {"alloc::collections::btree::node::Handle<alloc::collections::btree::node::NodeRef<alloc::collections::btree::node::marker::Mut,K,V,NodeType>,alloc::collections::btree::node::marker::KV>::into_val_mut",
     "…::Handle<…>::into_val_mut"},
    {"<&mut [u8] as core::fmt::Debug>::fmt",
     "<&mut [u8] as Debug>::fmt"},
    {"std::sys::pal::unix::stack_overflow::imp::PAGE_SIZE",
     "sys::pal::…::imp::PAGE_SIZE"},
    {"std::sys::thread_local::native::eager::destroy::<core::cell::Cell<std::thread::spawnhook::SpawnHooks>>",
     "sys::…::eager::destroy"},
    {"std::io::stdio::OUTPUT_CAPTURE::{K#0}::{closure#0}::__RUST_STD_INTERNAL_VAL",
     "{c…e#0}::__RUST_STD_INTERNAL_VAL"},
    {"core::ptr::drop_in_place<std::thread::spawnhook::ChildSpawnHooks>",
     "core::ptr::drop_in_place<…>"},
    {"std::backtrace_rs::symbolize::gimli::mmap",
     "backtrace_rs::…::gimli::mmap"},
    {"<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian> as gimli::read::reader::Reader>::read_uleb128",
     "<Endia… as Reader>::read_uleb128"},
    {"<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian> as gimli::read::reader::Reader>::read_offset",
     "<Endia…e as Reader>::read_offset"},
    {"std::collections::hash::map::HashMap<K,V,S,A>::insert",
     "…::HashMap<…>::insert"},
    {"core::ptr::drop_in_place<alloc::raw_vec::RawVec<f64>>",
     "core::ptr::drop_in_place<…>"},
    {"core::ptr::drop_in_place::<[alloc::boxed::Box<dyn core::ops::function::FnOnce<(), Output = ()> + core::marker::Send>]>",
     "core::ptr::drop_in_place::<…>"},
    {"<std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>>::lock",
     "<Mutex<…>>::lock"},
    {"<std::thread::scoped::ScopeData>::overflow",
     "<ScopeData>::overflow"},
    {"<core::fmt::Formatter>::debug_struct_field2_finish",
     "debug_struct_field2_finish"},
    {"core::array::iter::iter_inner::PolymorphicIter<[core::mem::maybe_uninit::MaybeUninit<T>]>::next",
     "…::PolymorphicIter<…>::next"},
    {"core::slice::sort::shared::smallsort::insertion_sort_shift_left",
     "insertion_sort_shift_left"},
    {"std::thread::current::with_current_name::<std::panicking::default_hook::{closure#0}::{closure#0}, ()>::{closure#0}",
     "with_current_name::{closure#0}"},
    {"std::sys::pal::unix::stack_overflow::imp::drop_handler",
     "sys::pal::…::imp::drop_handler"},
    {"core::ptr::drop_in_place<[alloc::boxed::Box<dyn core::ops::function::FnOnce<()>+Output = ()+core::marker::Send>]>",
     "core::ptr::drop_in_place<…>"},
    {"std::thread::main_thread::MAIN",
     "std::thread::main_thread::MAIN"},
    {"core::ptr::drop_in_place::<std::io::error::Error>",
     "core::ptr::drop_in_place::<…>"},
    {"core::ptr::drop_in_place::<core::result::Result<core::option::Option<alloc::boxed::Box<addr2line::unit::DwoUnit<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian>>>>, gimli::read::Error>>",
     "core::ptr::drop_in_place::<…>"},
    {"<std::sys::stdio::unix::Stderr as std::io::Write>::write_all",
     "<Stderr as Write>::write_all"},
    {"__rustc::__rust_foreign_exception",
     "__…tc::__rust_foreign_exception"},
    {"std::sys::exit::unique_thread_exit::EXITING_THREAD_ID",
     "uniq…ead_exit::EXITING_THREAD_ID"},
    {"<&i16 as core::fmt::Debug>::fmt",
     "<&i16 as core::fmt::Debug>::fmt"},
    {"core::slice::sort::shared::pivot::median3_rec",
     "core::…::pivot::median3_rec"},
    {"<gimli::read::unit::AttributeValue<gimli::read::endian_slice::EndianSlice<gimli::endianity::LittleEndian>, usize>>::u8_value",
     "<AttributeValue<…>>::u8_value"},
    {"core::slice::sort::stable::drift::sort",
     "core::slice::…::drift::sort"},
    {"core::iter::range::<impl core::iter::traits::iterator::Iterator for core::ops::range::Range<A>>::next",
     "<impl co…:range::Range<A>>::next"},
    {"<alloc::collections::btree::node::NodeRef<alloc::collections::btree::node::marker::Mut, u64, gimli::read::abbrev::Abbreviation, alloc::collections::btree::node::marker::Leaf>>::push_with_handle",
     "<NodeRef<…>>::push_with_handle"},
    {"core::ptr::drop_in_place<std::sys::os_str::bytes::Buf>",
     "core::ptr::drop_in_place<…>"},
    {"<alloc::raw_vec::RawVec<alloc::string::String>>::grow_one",
     "<RawVec<…>>::grow_one"},
    {"<std::backtrace_rs::symbolize::gimli::Cache>::with_global::MAPPINGS_CACHE",
     "…::with_global::MAPPINGS_CACHE"},
    {"core::core_arch::x86::sse2::_mm_load_si128",
     "core::…::sse2::_mm_load_si128"},
    {"core::ptr::const_ptr::<impl *const T>::offset_from_unsigned::precondition_check",
     "offs…nsigned::precondition_check"},
    {"<alloc::sync::Arc<T,A> as core::ops::drop::Drop>::drop",
     "<Arc<T,A> as Drop>::drop"},
    {"<core::fmt::Arguments as core::fmt::Display>::fmt",
     "<Arguments as Display>::fmt"},
    {"hashbrown::raw::RawTableInner::find_or_find_insert_index_inner",
     "find_or_find_insert_index_inner"},
    {"core::ptr::drop_in_place<std::thread::spawnhook::SpawnHooks>",
     "core::ptr::drop_in_place<…>"},
    {"<std::io::default_write_fmt::Adapter<std::io::cursor::Cursor<&mut [u8]>> as core::fmt::Write>::write_char",
     "<Adapter as Write>::write_char"},
    {"core::ptr::drop_in_place<hashbrown::map::IntoIter<alloc::string::String,r::Order>>",
     "core::ptr::drop_in_place<…>"},
    {"<alloc::raw_vec::RawVec<std::backtrace_rs::symbolize::gimli::parse_running_mmaps::MapsEntry>>::grow_one",
     "<RawVec<…>>::grow_one"},
    {"alloc::collections::btree::node::NodeRef<BorrowType,K,V,Type>::ascend",
     "alloc::…::NodeRef<…>::ascend"},
    {"core::ptr::drop_in_place::<std::ffi::os_str::OsString>",
     "core::ptr::drop_in_place::<…>"},
    {"hashbrown::raw::RawIterRange<T>::new",
     "…::RawIterRange<T>::new"},
    {"std::panicking::catch_unwind::do_call",
     "panicking::catch_unwind::do_call"},
    {"std::sys::env::unix::getenv::{closure#0}",
     "…::unix::getenv::{closure#0}"},
    {"std::sys::thread_local::guard::key::enable",
     "sys::…::key::enable"},
    {"<usize as core::fmt::LowerHex>::fmt",
     "<usize as LowerHex>::fmt"},
    {"<rustc_demangle::v0::Printer>::print_lifetime_from_index",
     "print_lifetime_from_index"},
    {"<std::io::stdio::StdoutRaw as std::io::Write>::write_all",
     "<StdoutRaw as Write>::write_all"},
    {"miniz_oxide::inflate::core::transfer",
     "miniz_oxide::…::core::transfer"},
    {"<alloc::vec::Vec<T,A> as core::clone::Clone>::clone",
     "<Vec<T,A> as Clone>::clone"},
    {"std::panicking::default_hook::{closure#0}",
     "default_hook::{closure#0}"},
    {"<core::alloc::layout::LayoutError as core::fmt::Debug>::fmt",
     "<LayoutError as Debug>::fmt"},
    {"<std::io::error::repr_bitpacked::Repr as core::ops::drop::Drop>::drop",
     "<Repr as Drop>::drop"},
    {"core::slice::sort::stable::drift::create_run",
     "core::…::drift::create_run"},
    {"<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
     "<Vec<T,A> as Drop>::drop"},
    {"<rustc_demangle::SizeLimitedFmtAdapter<&mut core::fmt::Formatter> as core::fmt::Write>::write_fmt",
     "<SizeLi…ter as Write>::write_fmt"},
    {"__rustc::__rust_start_panic",
     "__rustc::__rust_start_panic"},
    {"std::fs::buffer_capacity_required",
     "fs::buffer_capacity_required"},
    {"core::slice::sort::shared::pivot::choose_pivot",
     "core::…::pivot::choose_pivot"},
    {"<std::collections::hash::map::IntoIter<K,V,A> as core::iter::traits::iterator::Iterator>::size_hint",
     "<IntoIt…as Iterator>::size_hint"},
    {"std::sys::thread_local::native::eager::destroy::<core::cell::Cell<core::option::Option<alloc::sync::Arc<std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>>>>>",
     "sys::…::eager::destroy"},
    {"__rustc::__rust_drop_panic",
     "__rustc::__rust_drop_panic"},
    {"std.uni.Trie!(ubyte, dchar, 1114112uL, std.uni.sliceBits!(13uL, 21uL).sliceBits, std.uni.sliceBits!(6uL, 13uL).sliceBits, std.uni.sliceBits!(0uL, 6uL).sliceBits).Trie.opIndex!().opIndex(dchar) const",
     "std.uni.….opIndex!().opIndex"},
    {"rt.lifetime.__arrayPad(ulong, const(TypeInfo))",
     "rt.lifetime.__arrayPad(…)"},
    {"std.digest.WrapperDigest!(std.digest.sha.SHA!(1024u, 384u).SHA).WrapperDigest.finish()",
     "std.….WrapperDigest.finish"},
    {"rt.monitor_.disposeEvent(rt.monitor_.Monitor*, Object)",
     "rt.monitor_.disposeEvent(…)"},
    {"core.internal.atomic.atomicLoad!(5, bool).atomicLoad(inout(bool)*)",
     "core.….atomicLoad!(…).atomicLoad"},
    {"std.internal.test.dummyrange.DummyRange!(1, 0, 3, uint[]).DummyRange.back() const",
     "std.internal.….DummyRange.back"},
    {"std.concurrency.initOnce!(std.encoding.EncodingScheme.create(immutable(char)[]).initialized).initOnce(lazy shared(bool), shared(core.sync.mutex.Mutex))",
     "std.….initOnce!(…).initOnce"},
    {"std.conv.toChars!(2, char, 1, ulong).toChars(ulong).Result.opSlice(ulong, ulong)",
     "std.conv.….Result.opSlice"},
    {"std.format.internal.write.getNth!(\"integer width\", std.traits.isIntegral, int, immutable(char[])[]).getNth(uint, immutable(char[])[])",
     "std.format.….getNth!(…).getNth"},
    {"std.stdio.File.LockingTextWriter.put!(const(dchar)).put(const(dchar))",
     "std.stdio.File.….put!(…).put"},
    {"std.experimental.allocator.theAllocator(std.experimental.allocator.RCIAllocator)",
     "std.….allocator.theAllocator"},
    {"std.xml.seq!(std.xml.checkDocTypeDecl(ref immutable(char)[]), std.xml.star!(std.xml.checkMisc).star).seq",
     "std.xml.seq!(…).seq"},
    {"std.net.curl.SMTP.__fieldPostblit()",
     "std.net.….SMTP.__fieldPostblit"},
    {"std.functional.binaryFun!(\"a + b\", \"a\", \"b\").binaryFun!(uint, uint).binaryFun(ref uint, ref uint)",
     "std.….binaryFun!(…).binaryFun"},
    {"std.internal.test.dummyrange.DummyRange!(1, 1, 1, uint[]).DummyRange.save()",
     "std.internal.….DummyRange.save"},
    {"core.internal.hash.hashOf!(bool).hashOf(const(bool))",
     "core.….hashOf!(…).hashOf"},
    {"std.net.curl.HTTP.__mixin46.dnsTimeout(core.time.Duration)",
     "std.net.….__mixin46.dnsTimeout"},
    {"rt.util.typeinfo.TypeInfoGeneric!(ulong, ulong).TypeInfoGeneric.getHash(scope const(void*)) const",
     "rt.….TypeInfoGeneric.getHash"},
    {"std.internal.test.dummyrange.DummyRange!(1, 0, 0, uint[]).DummyRange.__xopEquals(ref const(std.internal.test.dummyrange.DummyRange!(1, 0, 0, uint[]).DummyRange)) const",
     "std.….DummyRange.__xopEquals"},
    {"rt.minfo.moduleinfos_apply(scope int(immutable(object.ModuleInfo*)) delegate)",
     "rt.minfo.moduleinfos_apply(…)"},
    {"core.time.convert!(\"weeks\", \"hnsecs\").convert(long)",
     "core.time.convert!(…).convert(…)"},
    {"core.internal.atomic.atomicStore!(5, std.parallelism.TaskPool.PoolState).atomicStore(std.parallelism.TaskPool.PoolState*, std.parallelism.TaskPool.PoolState)",
     "….atomicStore!(…).atomicStore"},
    {"rt.util.typeinfo.TypeInfoArrayGeneric!(float, float).TypeInfoArrayGeneric.toString() const",
     "….TypeInfoArrayGeneric.toString"},
    {"object.TypeInfo_Pointer.tsize() const",
     "object.TypeInfo_Pointer.tsize"},
    {"std.internal.test.dummyrange.DummyRange!(1, 1, 2, uint[]).DummyRange.front(uint)",
     "std.internal.….DummyRange.front"},
    {"rt.util.typeinfo.TypeInfoArrayGeneric!(ushort, ushort).TypeInfoArrayGeneric.equals(in void*, in void*) const",
     "rt.….TypeInfoArrayGeneric.equals"},
    {"std.net.curl.SMTP.__mixin13.shutdown()",
     "std.net.….__mixin13.shutdown"},
    {"rt.util.typeinfo.TypeInfoGeneric!(short, ushort).TypeInfoGeneric.toString() const",
     "rt.….TypeInfoGeneric.toString"},
    {"std.uni.sliceBits!(8uL, 21uL).sliceBits.opCall!(int).opCall(int)",
     "std.uni.….opCall!(int).opCall"},
    {"std.range.SortedRange!(std.algorithm.iteration.MapResult!(std.functional.unaryFun!(\"a.rhs\", \"a\").unaryFun, immutable(std.internal.unicode_tables.CompEntry)[]).MapResult, \"a < b\", 0).SortedRange.save()",
     "std.range.….SortedRange.save"},
    {"core.time.convert!(\"hnsecs\", \"weeks\").convert(long)",
     "core.time.convert!(…).convert(…)"},
    {"std.utf.strideImpl(char, ulong)",
     "std.utf.strideImpl(char, ulong)"},
    {"std.zip.ZipArchive.totalEntries() const",
     "std.zip.ZipArchive.totalEntries"},
    {"std.experimental.allocator.building_blocks.null_allocator.NullAllocator.owns(const(void[])) shared const",
     "Nul…locator.owns(…) shared const"},
    {"std.uni.GcPolicy.alloc!(uint).alloc(ulong)",
     "std.uni.GcPolicy.alloc!(…).alloc"},
    {"std.uni.PackedPtrImpl!(ubyte, 8uL).PackedPtrImpl.this(inout(ulong)*) inout",
     "….PackedPtrImpl.this(…) inout"},
    {"std.encoding.encodedLength!(char).encodedLength(dchar)",
     "encodedLength!(…).encodedLength"},
    {"rt.util.typeinfo.TypeInfoGeneric!(ushort, ushort).TypeInfoGeneric.equals(in void*, in void*) const",
     "rt.util.….TypeInfoGeneric.equals"},
};
// clang-format on
enum { NAME_COUNT = sizeof names / sizeof *names };

static void check(const char *name, size_t columns, const char *expected) {
    char text[NAME_BYTES];
    strcpy(text, name);
    shorten_function(text, columns);
    assert_string_equal(text, expected);
}

static void test_shorten(void **state) {
    (void)state;
    const char *insert = "std::vector<std::pair<int, long>>::insert<char const*>";
    check(insert, 80, insert);
    check(insert, 48, "std::vector<std::pair<…>>::insert<char const*>");
    check(insert, 40, "std::vector<…>::insert<…>");
    check(insert, 24, "std::vector<…>::insert");
    check(insert, 20, "vector<…>::insert");
    check(insert, 14, "vector::insert");
    check(insert, 8, "insert");
    check("a::bbb::c::function", 17, "a::…::c::function");
    check("alpha::beta::gamma::function", 18, "…::gamma::function");
    check("alpha::beta::gamma::function", 15, "gamma::function");
    check("no_namespace_at_all_here", 10, "no_…l_here");
    const char *of_go = "github.com/prometheus/client_golang/prometheus.(*Registry).Register";
    check(of_go, 80, of_go);
    check(of_go, 40, "…/prometheus.(*Registry).Register");
}

// A function is told by its class: no name is a mark and a word that others have too.
static void test_real_names(void **state) {
    (void)state;
    assert_int_equal(NAME_COUNT, 200);
    for (size_t i = 0; i < NAME_COUNT; i++) check(names[i].name, COLUMNS, names[i].in_32_columns);
}

static void check_form(const char *name, size_t columns) {
    char text[NAME_BYTES], again[NAME_BYTES];
    strcpy(text, name);
    shorten_function(text, columns);
    size_t used = text_columns(text);
    assert_true(used && used <= columns);
    if (text_columns(name) <= columns) assert_string_equal(text, name);
    assert_null(strstr(text, "……"));
    assert_null(strstr(text, "::::"));
    assert_string_not_equal(text, "…");
    // what is short enough stays
    strcpy(again, text);
    shorten_function(again, columns);
    assert_string_equal(again, text);
    bool has_bare_mark =
        !strncmp(text, "…::", strlen("…::")) && !strstr(text + strlen("…::"), "::");
    assert_false(has_bare_mark);
}

static void test_every_width(void **state) {
    (void)state;
    for (size_t i = 0; i < NAME_COUNT; i++)
        for (size_t columns = 4; columns <= 100; columns++) check_form(names[i].name, columns);
}

// Angle brackets that are no template arguments.
static void test_operators(void **state) {
    (void)state;
    check("ns::Stream::operator<<", 18, "Stream::operator<<");
    check("ns::Pointer<long long>::operator->", 26, "ns::Pointer<…>::operator->");
    check("a::operator<", 12, "a::operator<");
    check("std::operator<< <char, std::char_traits<char>>", 24, "std::operator<< <…>");
    check("operator+<char, std::char_traits<char>, std::allocator<char>>", 20, "operator+<…>");
    check("<impl core::fmt::Debug for alloc::vec::Vec<T>>::fmt", 20, "<impl…r Vec<T>>::fmt");
    check("reader::parse::{lambda(long, long)#1}::operator()", 44,
          "reader::parse::{lambda(…)#1}::operator()");
}

static void test_paths(void **state) {
    (void)state;
    char path[64] = "/home/me/projects/thing/source.cc";
    shorten_path(path, 33);
    assert_string_equal(path, "/home/me/projects/thing/source.cc");
    shorten_path(path, 20);
    assert_string_equal(path, "…/thing/source.cc");
    shorten_path(path, 5);
    assert_string_equal(path, "…/source.cc");
    shorten_path(path, 5);
    assert_string_equal(path, "…/source.cc");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shorten),     cmocka_unit_test(test_real_names),
        cmocka_unit_test(test_every_width), cmocka_unit_test(test_operators),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
