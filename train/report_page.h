// The page of report.h without its contents: report_page/, put together by the
// build. Its only placeholders are @TITLE@ and @DATA@.
#ifndef WENGERT_TRAIN_REPORT_PAGE_H_
#define WENGERT_TRAIN_REPORT_PAGE_H_

namespace wengert::train::internal {

extern const char kReportPage[];

}  // namespace wengert::train::internal

#endif  // WENGERT_TRAIN_REPORT_PAGE_H_
