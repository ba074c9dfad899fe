package audit

import "time"

// Backlog describes how far a sink is behind with the events of this process. Source: ADR-0039.
type Backlog struct {
	Sink string `json:"sink"`
	// Waiting is the number of events that are not stored yet.
	Waiting int `json:"waiting"`
	// Failing is the time since which every attempt of the sink has failed. Zero: the last attempt succeeded, or there
	// was none.
	Failing time.Time `json:"failing,omitzero"`
	// Lost is the number of events that the sink did not store, including the events that were refused together with their
	// requests.
	Lost int `json:"lost,omitempty"`
	// Unusable reports whether the settings are wrong, so that no sink of this kind could be opened. Sink is then
	// empty.
	Unusable bool `json:"unusable,omitempty"`
}

// Backlogs returns the backlog of each sink of the current configuration. nil: nothing is recorded, or no event has been.
func (t *Trail) Backlogs() []Backlog {
	v := t.version()
	var list []Backlog
	if v.err != nil {
		list = append(list, Backlog{Unusable: true})
	}
	for _, s := range v.spools {
		list = append(list, s.backlog())
	}
	return list
}

func (s *spool) backlog() Backlog {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for _, e := range s.waiting {
		if !e.settled {
			waiting++
		}
	}
	return Backlog{Sink: s.name, Waiting: waiting, Failing: s.failing, Lost: s.lost}
}
