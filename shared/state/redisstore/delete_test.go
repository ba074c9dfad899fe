package redisstore_test

import (
	"errors"
	"slices"
	"testing"

	"management.platform.sh/shared/state/redisstore"
	"management.platform.sh/shared/state/store"
)

// TestDeleteAnswers: a removal answers in its round trip whether anything refers to the object, and nothing if it is refused.
func TestDeleteAnswers(t *testing.T) {
	onBothServers(t, func(t *testing.T, url string) {
		ctx := t.Context()
		client := open(t, url, redisstore.Options{})
		s, others := client.Resource("things"), client.Resource("others")
		one := thing("one")
		revision, err := s.Create(ctx, one)
		must(t, err)
		for _, s := range []store.Store{s, others} {
			two := thing("two")
			two.Digest, two.References = "", []string{"u1"}
			_, err := s.Create(ctx, two)
			must(t, err)
		}
		questions := &store.Questions{Asked: []store.Referral{
			{Resource: "things", UID: "u1"}, {Resource: "others", UID: "u1"}, {Resource: "things", UID: "u2"}, {Resource: "others"}, {Resource: "none", UID: "u1"},
		}}
		if _, err := s.Delete(store.WithQuestions(ctx, questions), "one", revision+7); !errors.Is(err, store.ErrConflict) || questions.Answers != nil {
			t.Errorf("a refused removal: %v, %v", err, questions.Answers)
		}
		_, err = s.Delete(store.WithQuestions(ctx, questions), "one", revision)
		must(t, err)
		if want := []bool{true, true, false, false, false}; !slices.Equal(questions.Answers, want) {
			t.Errorf("answers %v, want %v", questions.Answers, want)
		}
		_, err = s.Delete(store.WithQuestions(ctx, &store.Questions{}), "two", revision+1)
		must(t, err)
	})
}
